"""From the target's logits to tokens and text: what requests may ask, and how each is done."""

from outrider.engine.sampling.distribution import (
    draw,
    greedy_choices,
    greedy_tokens,
    probabilities,
    target_distribution,
    unusable_rows,
)
from outrider.engine.sampling.parameters import SamplingParameters
from outrider.engine.sampling.processing import process
from outrider.engine.sampling.state import Sampling

__all__ = [
    "Sampling",
    "SamplingParameters",
    "draw",
    "greedy_choices",
    "greedy_tokens",
    "probabilities",
    "process",
    "target_distribution",
    "unusable_rows",
]
