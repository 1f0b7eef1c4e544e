"""How far into a draft acceptance reaches, with the two answers side by side."""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from outrider.acceptance.histogram import AcceptanceHistogram
from outrider.acceptance.survival import product_limit_survival, survival
from outrider.records.request import StepRecord


@dataclass(frozen=True, slots=True)
class PositionSurvival:
    """How often draft position `position`, counted from 1, was accepted (shares of 0 to 1).

    `survival` and `conditional` are product-limit estimates: of the `at_risk` steps, which had
    accepted all before and drafted a token here, `accepted` accepted it. `naive_tail_ratio`
    divides by all steps, also those whose draft was too short to get here. None: no step says.
    """

    position: int
    at_risk: int
    accepted: int
    conditional: float | None
    survival: float | None
    naive_tail_ratio: float | None


def position_survivals(
    verification: Sequence[StepRecord], histogram: AcceptanceHistogram
) -> tuple[PositionSurvival, ...]:
    """Return the survival of positions 1 ... K from the verification steps of `histogram`."""
    product_limit = product_limit_survival(
        [step.accepted for step in verification],
        [step.drafted for step in verification],
        histogram.k,
    )
    naive = survival(histogram) or (None,) * histogram.k
    return tuple(
        PositionSurvival(
            position=reach.position,
            at_risk=reach.at_risk,
            accepted=reach.accepted,
            conditional=_number(reach.conditional),
            survival=_number(reach.survival),
            naive_tail_ratio=_number(tail_ratio),
        )
        for reach, tail_ratio in zip(product_limit, naive, strict=True)
    )


def _number(exact: Fraction | None) -> float | None:
    return None if exact is None else float(exact)
