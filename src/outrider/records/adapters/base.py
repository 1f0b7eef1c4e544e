"""What an adapter is: two questions."""

from collections.abc import Iterator, Sequence
from typing import Any, Protocol, runtime_checkable

from outrider.records.batch import RecordBatch
from outrider.records.collecting import Collection
from outrider.records.reading import Place, Reading
from outrider.records.sources.document import Document

PlacedReading = tuple[Place, Reading | Collection]
"""A reading with its place; a partial report holds what many readings came to."""


class Adapter(Protocol):
    """One engine's or file format's way to tell of acceptance.

    `recognises` is asked for every document, so it is cheap, never raises, and says yes only to
    what `convert` can read: the placement of fields and their neighbours decide, not one name that
    several engines share. `convert` yields one reading per record that the document holds, with its
    place; whatever is wrong with one record becomes a BadRecord and the rest is still read. Nothing
    raises on any content.
    """

    @property
    def name(self) -> str:
        """The name that `--from` takes."""

    def recognises(self, document: Document) -> bool:
        """Whether `convert` can read the document."""

    def convert(self, document: Document) -> Iterator[PlacedReading]:
        """Read the records of a document that was recognised, or that the user says is such."""


@runtime_checkable
class LineAdapter(Adapter, Protocol):
    """An adapter that can read plain lines of JSON by the thousand."""

    def plain_line(self, line: bytes) -> Any | None:
        """Return the line for `batches` to read, None for one that only `convert` can."""

    def batches(
        self, plain: Sequence[Any], lines: Sequence[int]
    ) -> tuple[list[RecordBatch], list[int]]:
        """Return what `convert` and the checks would make of the lines, with their numbers.

        The second part is the places of those that have to be read one by one after all.
        """
