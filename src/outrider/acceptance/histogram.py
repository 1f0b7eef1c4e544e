"""The acceptance histogram: how many verification steps accepted how many draft tokens."""

from dataclasses import dataclass
from fractions import Fraction
from typing import Self

import numpy as np

from outrider.acceptance.lengths import Lengths, checked_lengths
from outrider.acceptance.ratio import ratio


@dataclass(frozen=True, slots=True)
class AcceptanceHistogram:
    """Steps by accepted length, `counts` = (H_0, ..., H_K), and the tokens drafted in them.

    `drafted` is D, with None for unknown, which is never read as zero or as K * S. Every figure
    is exact; None stands for a ratio whose denominator is 0 or unknown. Raises ValueError for
    counts that no run can produce.

    >>> histogram = AcceptanceHistogram((39, 1, 0, 3), drafted=129)
    >>> histogram.mean_acceptance_length, histogram.draft_acceptance_rate
    (Fraction(53, 43), Fraction(10, 129))
    """

    counts: tuple[int, ...]
    drafted: int | None

    def __post_init__(self) -> None:
        if self.k < 1:
            raise ValueError(f"counts has {len(self.counts)} entries; expected H_0 to H_K, K >= 1")
        for accepted, steps in enumerate(self.counts):
            _check_count(f"H_{accepted}", steps)
        if self.drafted is not None:
            _check_count("D", self.drafted)
            if not self.accepted <= self.drafted <= self.k * self.steps:
                raise ValueError(
                    f"D is {self.drafted} with A = {self.accepted}, K = {self.k} and"
                    f" S = {self.steps}; expected A <= D <= K * S"
                )

    @classmethod
    def from_steps(cls, accepted: Lengths, drafted: Lengths, k: int) -> Self:
        """Count verification steps: one accepted and one drafted length each, no longer than K.

        Raises ValueError for a step without a draft, or one that accepts more than it drafted.
        """
        a, d = checked_lengths(accepted, drafted, k)
        counts = np.bincount(a, minlength=k + 1)
        return cls(counts=tuple(int(steps) for steps in counts), drafted=int(d.sum()))

    @property
    def k(self) -> int:
        """K, the configured maximum draft length."""
        return len(self.counts) - 1

    @property
    def steps(self) -> int:
        """S, the number of verification steps."""
        return sum(self.counts)

    @property
    def accepted(self) -> int:
        """A, the accepted draft tokens; bonus tokens are not among them."""
        return sum(length * steps for length, steps in enumerate(self.counts))

    @property
    def waste(self) -> int | None:
        """D - A, the drafted tokens that were not accepted."""
        return None if self.drafted is None else self.drafted - self.accepted

    @property
    def mean_acceptance_length(self) -> Fraction | None:
        """M = 1 + A/S, tokens per verification step, the bonus token included."""
        return ratio(self.steps + self.accepted, self.steps)

    @property
    def draft_acceptance_rate(self) -> Fraction | None:
        """A/D, the share of drafted tokens that were accepted."""
        return None if self.drafted is None else ratio(self.accepted, self.drafted)

    @property
    def immediate_failure_rate(self) -> Fraction | None:
        """H_0/S, the share of steps that accepted nothing."""
        return ratio(self.counts[0], self.steps)

    @property
    def full_draft_rate(self) -> Fraction | None:
        """H_K/S, the share of steps that accepted K tokens."""
        return ratio(self.counts[-1], self.steps)


def _check_count(name: str, value: int) -> None:
    # Numpy's integers would overflow where Python's stay exact, and True is no count.
    if type(value) is not int or value < 0:
        raise ValueError(f"{name} is {value!r}; expected a whole number of at least 0, as an int")
