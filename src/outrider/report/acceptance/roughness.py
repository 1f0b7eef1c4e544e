"""Which figures of a segment are not counted, and what they are instead."""

from dataclasses import dataclass

from outrider.acceptance.figures import SegmentFigures

_ESTIMATED = "estimated from other numbers, not counted"
_NOMINAL = "nominal: K for every step, not counted"


@dataclass(frozen=True, slots=True)
class Roughness:
    """Why the figures of a segment are not counted, None for what is counted.

    `rate` is that of A/D and of the wasted tokens.
    """

    steps: str | None
    accepted: str | None
    drafted: str | None
    mean: str | None
    rate: str | None

    @classmethod
    def of(cls, figures: SegmentFigures) -> "Roughness":
        """Return which of the figures are rough."""
        steps = _ESTIMATED if figures.steps_estimated else None
        accepted = _ESTIMATED if figures.accepted_estimated else None
        drafted = _NOMINAL if figures.drafted_nominal else None
        return cls(steps, accepted, drafted, mean=steps or accepted, rate=drafted or accepted)
