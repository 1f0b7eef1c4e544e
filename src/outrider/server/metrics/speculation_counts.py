"""What all verification steps come to, in sums that a counter can show."""

from dataclasses import dataclass, field, replace
from itertools import accumulate
from typing import Self

from outrider.records.request import StepRecord


@dataclass(slots=True)
class SpeculationCounts:
    """Counts of the verification steps of all requests, with drafts of at most `k` tokens.

    A step counts when something was drafted, and what it accepted counts before a stop cuts the
    run. The three histograms have a place for each length from 0 to k: of drafts, of accepted
    prefixes, and of what was at risk of a draft, which ends with its first rejected token.
    """

    k: int
    by_drafted: list[int] = field(default_factory=list)
    by_accepted: list[int] = field(default_factory=list)
    by_at_risk: list[int] = field(default_factory=list)
    accepted_emitted: int = 0
    trimmed: int = 0
    invalidated: int = 0

    def __post_init__(self) -> None:
        for lengths in (self.by_drafted, self.by_accepted, self.by_at_risk):
            lengths.extend([0] * (self.k + 1 - len(lengths)))

    def add(self, record: StepRecord) -> None:
        """Count one decode step of one request."""
        self.trimmed += record.trimmed
        self.invalidated += record.invalidated
        if record.drafted:
            self.by_drafted[record.drafted] += 1
            self.by_accepted[record.accepted] += 1
            self.by_at_risk[min(record.accepted + 1, record.drafted)] += 1
            self.accepted_emitted += record.accepted_emitted

    def copy(self) -> Self:
        """Return the counts as they are now."""
        return replace(
            self,
            by_drafted=self.by_drafted.copy(),
            by_accepted=self.by_accepted.copy(),
            by_at_risk=self.by_at_risk.copy(),
        )

    @property
    def steps(self) -> int:
        """S, the verification steps."""
        return sum(self.by_accepted)

    @property
    def drafted(self) -> int:
        """D, the drafted tokens."""
        return _sum_of_lengths(self.by_drafted)

    @property
    def accepted(self) -> int:
        """A, the accepted tokens."""
        return _sum_of_lengths(self.by_accepted)


def steps_at_positions(by_length: list[int]) -> list[int]:
    """Return how many steps reach each position from the first on, K of them.

    >>> steps_at_positions([5, 2, 1])
    [3, 1]
    """
    return list(accumulate(reversed(by_length)))[-2::-1]


def _sum_of_lengths(by_length: list[int]) -> int:
    return sum(length * steps for length, steps in enumerate(by_length))
