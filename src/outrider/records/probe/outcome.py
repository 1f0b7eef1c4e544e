"""What a rung comes to: it tells, it does not, that is unknown, or it was not tried."""

from dataclasses import dataclass
from typing import TypeAlias

from outrider.records.reading import AcceptanceRecord


@dataclass(frozen=True, slots=True)
class Tells:
    """Figures can be had here.

    `records` are those seen, none where the counters stand at 0, which `zero` then says. `streamed`
    tells whether a stream has them too, None where that is unknown or no question. `k` is K.
    """

    records: tuple[AcceptanceRecord, ...]
    k: int | None
    zero: str | None = None
    streamed: bool | None = None
    stream_reason: str | None = None


@dataclass(frozen=True, slots=True)
class DoesNot:
    """The server was asked and has no figures here, for this reason."""

    reason: str


@dataclass(frozen=True, slots=True)
class Unknown:
    """The server was asked, and what came back does not settle it."""

    reason: str


@dataclass(frozen=True, slots=True)
class NotTried:
    """Nothing was asked, for this reason."""

    reason: str


Outcome: TypeAlias = Tells | DoesNot | Unknown | NotTried


@dataclass(frozen=True, slots=True)
class Line:
    """A line to type, and what it gives."""

    command: str
    gives: str
