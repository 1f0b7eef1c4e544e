"""What a rung is."""

from typing import Protocol

from outrider.records.probe.outcome import Line, NotTried, Outcome, Unknown
from outrider.records.probe.seen import Missing, Seen


class Rung(Protocol):
    """One place where a server may tell of its speculation.

    `judge` says what was found there, from what was seen; it asks nothing itself. `lines` are what
    to type to read it, for a server that tells here.
    """

    @property
    def name(self) -> str:
        """A name that stays, for programs."""

    @property
    def title(self) -> str:
        """The place in a few words."""

    def judge(self, seen: Seen) -> Outcome:
        """Return what the server tells here."""

    def lines(self, seen: Seen) -> tuple[Line, ...]:
        """Return what to type, the best first."""


def without_answer(missing: Missing) -> Outcome:
    """Return the outcome of a rung that nothing was seen of."""
    return Unknown(missing.reason) if missing.asked else NotTried(missing.reason)
