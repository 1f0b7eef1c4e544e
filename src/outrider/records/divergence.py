"""Where an arm's output left that of no speculation."""

from dataclasses import dataclass
from typing import Literal

DivergenceKind = Literal["near-tie", "real"]


@dataclass(frozen=True, slots=True)
class Divergence:
    """The first difference between one request's output and the baseline's for its prompt.

    `position` counts output tokens from 0. The expected token is the baseline's, the actual one
    the arm's; None means that the output had ended before. `top2_gap` is the distance in logits
    between the target's two best tokens at that position, None where it was not computed.
    """

    arm: str
    prompt_id: str
    repeat: int
    position: int
    expected_token_id: int | None
    actual_token_id: int | None
    top2_gap: float | None
    kind: DivergenceKind
