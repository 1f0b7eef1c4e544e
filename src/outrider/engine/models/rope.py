"""Rotary position tables."""

import torch


def rope_tables(head_dim: int, theta: float, positions: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Cosines and sines [positions, head_dim / 2] in float32 (Su et al., arXiv 2104.09864)."""
    exponents = torch.arange(0, head_dim, 2, dtype=torch.float32) / head_dim
    angles = torch.outer(torch.arange(positions, dtype=torch.float32), 1.0 / theta**exponents)
    return angles.cos(), angles.sin()
