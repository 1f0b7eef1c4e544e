"""Partial reports that `outrider report --partial` wrote."""

from collections.abc import Iterator

from outrider.records.adapters.base import PlacedReading
from outrider.records.partial import is_partial, partial_from_json
from outrider.records.reading import BadRecord, InvalidRecord
from outrider.records.sources.document import Document, JsonDocument


class PartialReport:
    """Merges what another `outrider report` has read."""

    name = "partial"

    def recognises(self, document: Document) -> bool:
        """Whether the document says that it is a partial report."""
        return isinstance(document, JsonDocument) and is_partial(document.value)

    def convert(self, document: Document) -> Iterator[PlacedReading]:
        """Yield the collection, or why it cannot be merged."""
        if not isinstance(document, JsonDocument) or not isinstance(document.value, dict):
            yield document.place, BadRecord("not a partial report")
            return
        try:
            yield document.place, partial_from_json(document.value)
        except InvalidRecord as error:
            yield document.place, BadRecord(str(error))
