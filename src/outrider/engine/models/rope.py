"""Rotary positions: how fast each pair of a head turns, and tables of the angles.

Pair i of a head of D values turns by `theta ** (-2 i / D)` per position (Su et al., arXiv
2104.09864). The kinds other than "default" slow the turning down, so that a model trained on few
positions serves more of them.
"""

import math
from dataclasses import dataclass
from typing import Literal

import torch

RopeKind = Literal["default", "linear", "llama3", "yarn", "divisors"]


@dataclass(frozen=True, slots=True)
class Rope:
    """One way to turn queries and keys; each kind reads only the fields that it needs."""

    theta: float
    kind: RopeKind = "default"
    factor: float = 1.0
    """How many times more positions than in training (linear, llama3, yarn)."""
    trained_positions: int = 0
    """Positions seen in training (llama3, yarn)."""
    low_frequency_factor: float = 1.0
    """Pairs with fewer turns in training than this are slowed by the whole factor (llama3)."""
    high_frequency_factor: float = 4.0
    """Pairs with more turns in training than this keep their speed (llama3)."""
    beta_slow: float = 1.0
    """As `low_frequency_factor` (yarn)."""
    beta_fast: float = 32.0
    """As `high_frequency_factor` (yarn)."""
    whole_pairs: bool = True
    """Whether the bounds that the betas set are rounded outwards to whole pairs (yarn)."""
    attention_factor: float = 1.0
    """Factor of the turned queries and keys (yarn)."""
    divisors: tuple[float, ...] = ()
    """By how much each of the D / 2 pairs is slowed (divisors, as GGUF stores llama3)."""


def rope_tables(rope: Rope, head_dim: int, positions: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Cosines and sines [positions, head_dim / 2] in float32, times the attention factor."""
    places = torch.arange(positions, dtype=torch.float32)
    angles = torch.outer(places, frequencies(rope, head_dim))
    return angles.cos() * rope.attention_factor, angles.sin() * rope.attention_factor


def frequencies(rope: Rope, head_dim: int) -> torch.Tensor:
    """The turn per position of each pair [head_dim / 2] in radians, float32."""
    exponents = torch.arange(0, head_dim, 2, dtype=torch.float32) / head_dim
    trained = 1.0 / rope.theta**exponents
    match rope.kind:
        case "default":
            return trained
        case "linear":
            return trained / rope.factor
        case "llama3":
            return _llama3(rope, trained)
        case "yarn":
            return _yarn(rope, trained)
        case "divisors":
            return trained / torch.tensor(rope.divisors)


def yarn_attention_factor(factor: float, weight: float = 1.0) -> float:
    """What makes up for flatter scores at `factor` times the positions (arXiv 2309.00071)."""
    return 0.1 * weight * math.log(factor) + 1.0 if factor > 1 else 1.0


def _llama3(rope: Rope, trained: torch.Tensor) -> torch.Tensor:
    """Slows pairs by how many turns they made in training, with a ramp between the two bounds."""
    turns = rope.trained_positions / (2 * math.pi / trained)
    low, high = rope.low_frequency_factor, rope.high_frequency_factor
    kept = ((turns - low) / (high - low)).clamp(0, 1)
    return (1 - kept) * trained / rope.factor + kept * trained


def _yarn(rope: Rope, trained: torch.Tensor) -> torch.Tensor:
    """The same with a ramp over the number of the pair (arXiv 2309.00071)."""
    pairs = len(trained)

    def pair_with(turns: float) -> float:
        return (
            pairs * math.log(rope.trained_positions / (turns * 2 * math.pi)) / math.log(rope.theta)
        )

    first, last = pair_with(rope.beta_fast), pair_with(rope.beta_slow)
    if rope.whole_pairs:
        first, last = math.floor(first), math.ceil(last)
    # The upper limit is that of transformers and of llama.cpp: the head size, not the pairs.
    first, last = max(first, 0), min(last, 2 * pairs - 1)
    width = last - first or 0.001
    slowed = ((torch.arange(pairs, dtype=torch.float32) - first) / width).clamp(0, 1)
    return slowed * trained / rope.factor + (1 - slowed) * trained
