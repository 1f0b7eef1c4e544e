"""What every format of a log offers."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias

from outrider.records.reading import BadRecord, NoMetrics, Place, TagValue
from outrider.replay.answer import LoggedAnswer
from outrider.replay.logs.text_encoder import TextEncoder

Logged: TypeAlias = LoggedAnswer | NoMetrics | BadRecord


@dataclass(frozen=True, slots=True)
class Entry:
    """One line, row or body of a log.

    `value` is as it was logged. `request` is the request that it answers, where that was logged
    beside it, and `tags` are what an envelope around both told.
    """

    place: Place
    value: Mapping[str, Any]
    request: Mapping[str, Any]
    tags: Mapping[str, TagValue]


class LogFormat(Protocol):
    """Knows the entries of one kind, and the answers in them."""

    @property
    def name(self) -> str:
        """What `--from` calls it."""

    def recognises(self, entry: Entry) -> bool:
        """Whether the entry is of this format."""

    def answers(self, entry: Entry, encoder: TextEncoder | None) -> Iterator[Logged]:
        """Yield what the entry holds; text is for the `encoder`, and lost without one."""
