"""A mean acceptance length that was expected, held against the measured figures: arithmetic only.

What a K rules out, what another K could explain, and which other way of counting gives the number.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import ceil, hypot, inf
from typing import Literal, TypeAlias

from outrider.acceptance.estimate import Estimate
from outrider.acceptance.figures import SegmentFigures

Outcome: TypeAlias = Literal["as expected", "below", "above", "cannot be compared"]

SAME_FIGURE = 0.02
"""Two ways of counting that differ by no more than this share may be one; cards round."""
NEXT_TO_NOTHING = 0.05
"""Other prompts or a lossy quantisation leave more than a twentieth of the accepted tokens."""


@dataclass(frozen=True, slots=True)
class ExpectedMean:
    """An expected M, from `low` to `high`: its interval, or what it may have been rounded from.

    `survival` is s_1, s_2, ... of the run that gave it, over all of its steps; empty where untold.
    """

    value: float
    low: float
    high: float
    k: int | None = None
    survival: tuple[float, ...] = ()

    def at(self, k: int | None) -> "ExpectedMean":
        """Return what the same run would give with drafts cut to `k`, itself where untold."""
        if k is None or not self.survival or k >= len(self.survival):
            return self
        value = 1 + sum(self.survival[:k])
        scale = (value - 1) / (self.value - 1) if self.value > 1 else 1.0
        return ExpectedMean(
            value,
            value - scale * (self.value - self.low),
            value + scale * (self.high - self.value),
            k,
            self.survival[:k],
        )


@dataclass(frozen=True, slots=True)
class MeanAtK:
    """What the measured steps allow M to be at `k`, from `low` to `high` tokens.

    `least` and `most` also allow for chance, by the 95 % intervals; without any they are the same.
    """

    k: int | None
    low: float
    high: float
    least: float
    most: float


@dataclass(frozen=True, slots=True)
class OtherCount:
    """A figure of the same steps that is also called acceptance length somewhere.

    `formula` marks what assumes one chance for all positions, so that it is no measured length.
    """

    name: str
    value: float
    formula: bool = False


def least_k(m: float) -> int:
    """Return the smallest K that allows a mean of `m` tokens per step, as M is at most K + 1.

    >>> [least_k(m) for m in (1.0, 4.0, 5.5)]
    [0, 3, 5]
    """
    return max(0, ceil(m - 1))


def mean_at(figures: SegmentFigures, k: int | None) -> MeanAtK | None:
    """Return what M could be at `k` (None: as measured); None where M is unknown.

    A smaller K cuts drafts, so M is 1 + s_1 + ... + s_k over all steps. A larger one adds from 0 to
    s_K for each further position, as survival never rises. Both take for granted that the drafter
    proposes the same tokens at either K.
    """
    m = figures.mean_acceptance_length
    if m.value is None:
        return None
    least, most = _ends(m)
    if k is None or figures.k is None or k == figures.k:
        return MeanAtK(figures.k, m.value, m.value, least, most)
    if k > figures.k:
        last, last_most = last_survival(figures)
        more = k - figures.k
        return MeanAtK(k, m.value, m.value + more * last, least, most + more * last_most)
    cut = [position.naive for position in figures.positions[:k]]
    if len(cut) == k and all(each.value is not None for each in cut):
        value = 1 + sum(each.value or 0 for each in cut)
        ends = [_ends(each) for each in cut]
        return MeanAtK(
            k, value, value, 1 + sum(low for low, _ in ends), 1 + sum(high for _, high in ends)
        )
    # The first k positions hold at least their share of what was accepted, as survival falls.
    share = k / figures.k
    return MeanAtK(
        k,
        1 + (m.value - 1) * share,
        min(k + 1, m.value),
        1 + (least - 1) * share,
        min(k + 1, most),
    )


def last_survival(figures: SegmentFigures) -> tuple[float, float]:
    """Return s_K, the most that a further position could add, and the end of its interval.

    Where positions are untold it is their mean, (M - 1) / K, which s_K cannot exceed.
    """
    m, k = figures.mean_acceptance_length, figures.k
    if figures.positions and (last := figures.positions[-1].survival).value is not None:
        return last.value, _ends(last)[1]
    if m.value is None or not k:
        return 1.0, 1.0
    return (m.value - 1) / k, (_ends(m)[1] - 1) / k


def k_needed(figures: SegmentFigures, expected: float) -> int | None:
    """Return the smallest K that could give `expected` if all further positions did their most.

    None where none could: nothing survives the last position, or M is unknown.
    """
    m, k = figures.mean_acceptance_length.value, figures.k
    if m is None or k is None:
        return None
    if expected <= m:
        return k
    last, _ = last_survival(figures)
    # Rounding must not ask for one position more than an exact division.
    return k + ceil((expected - m) / last - 1e-9) if last > 0 else None


def compare(here: MeanAtK, expected: ExpectedMean) -> tuple[Outcome, float]:
    """Return how the measured mean relates to the expected one, and by how many tokens.

    Chance is allowed for on both sides, as the root of the sum of squares. Both ends of what `here`
    allows must agree to be as expected; where only some of it does, nothing can be said. The tokens
    are counted from the nearest end, so at another K they are the least they could be.
    """
    up = hypot(here.most - here.high, expected.value - expected.low)
    down = hypot(here.low - here.least, expected.high - expected.value)
    if expected.value - here.high > up:
        return "below", here.high - expected.value
    if here.low - expected.value > down:
        return "above", here.low - expected.value
    if expected.value - here.low > up or here.high - expected.value > down:
        return "cannot be compared", 0.0
    nearest = min(max(expected.value, here.low), here.high)
    return "as expected", nearest - expected.value


def barely_accepts(figures: SegmentFigures, expected: float) -> bool:
    """Whether a twentieth or less of the expected draft tokens is accepted: M is near 1."""
    m = figures.mean_acceptance_length.value
    return m is not None and expected > 1 and m - 1 <= NEXT_TO_NOTHING * (expected - 1)


def other_counts(figures: SegmentFigures) -> tuple[OtherCount, ...]:
    """Return what else the same steps may be said to come to, measured figures before formulas."""
    return tuple(
        OtherCount(name, value, formula)
        for name, formula, count in _COUNTS
        if (value := count(figures)) is not None and value < inf
    )


def counted_differently(figures: SegmentFigures, expected: ExpectedMean) -> OtherCount | None:
    """Return the other count that agrees with the expected figure where M does not."""
    m = figures.mean_acceptance_length.value
    if m is None:
        return None
    near = max(SAME_FIGURE * expected.value, expected.high - expected.value)
    matching = [
        each
        for each in other_counts(figures)
        if (off := abs(each.value - expected.value)) <= near and off < abs(m - expected.value)
    ]
    # A measured figure explains more than a formula that happens to come near.
    return min(
        matching, key=lambda each: (each.formula, abs(each.value - expected.value)), default=None
    )


def best_of(estimates: Sequence[Estimate]) -> Estimate | None:
    """Return the estimate of the highest value, None where no value is known."""
    known = [each for each in estimates if each.value is not None]
    return max(known, key=lambda each: each.value or 0, default=None)


def _ends(figure: Estimate) -> tuple[float, float]:
    assert figure.value is not None
    if figure.interval is None:
        return figure.value, figure.value
    return min(figure.value, figure.interval.low), max(figure.value, figure.interval.high)


def _accepted_only(figures: SegmentFigures) -> float | None:
    m = figures.mean_acceptance_length.value
    return None if m is None else m - 1


def _by_request(figures: SegmentFigures) -> float | None:
    return figures.mean_acceptance_length_by_request.value


def _per_decode_step(figures: SegmentFigures) -> float | None:
    m, coverage = figures.mean_acceptance_length.value, figures.coverage.value
    return None if m is None or coverage is None else 1 + (m - 1) * coverage


def _endless(chance: float | None) -> float | None:
    return None if chance is None or not 0 <= chance < 1 else 1 / (1 - chance)


def _up_to_k(chance: float | None, k: int | None) -> float | None:
    if chance is None or not k or not 0 <= chance < 1:
        return None
    return float((1 - chance ** (k + 1)) / (1 - chance))


def _rate(figures: SegmentFigures) -> float | None:
    return figures.draft_acceptance_rate.value


def _first(figures: SegmentFigures) -> float | None:
    return figures.positions[0].conditional.value if figures.positions else None


_COUNTS: tuple[tuple[str, bool, Callable[[SegmentFigures], float | None]], ...] = (
    ("A/S, accepted tokens per step without the target's own", False, _accepted_only),
    ("M by request, each answer weighing the same", False, _by_request),
    ("tokens per decode step, those without a draft included", False, _per_decode_step),
    ("1/(1 − A/D), as if each token had the same chance", True, lambda f: _endless(_rate(f))),
    (
        "(1 − p^(K+1))/(1 − p) with p = A/D, as if each token had the same chance",
        True,
        lambda f: _up_to_k(_rate(f), f.k),
    ),
    (
        "1/(1 − c_1), as if each token had the chance of the first",
        True,
        lambda f: _endless(_first(f)),
    ),
    (
        "(1 − p^(K+1))/(1 − p) with p = c_1, as if each token had the chance of the first",
        True,
        lambda f: _up_to_k(_first(f), f.k),
    ),
)
"""Another way to count is a function and a line here."""
