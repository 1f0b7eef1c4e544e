"""Three ways to keep only the likelier tokens: the logits of all others become minus infinity.

Each keeps what reaches a threshold, so tokens that are equally likely are kept or dropped together
and a row's result depends on nothing but the row. vLLM's sort may cut through a tie at top-p.
"""

import math
from collections.abc import Sequence

import torch

FIRST_LOOK_TOKENS = 256
"""How many of the most likely tokens top-p looks at before it sorts more of them."""


def keep_min_p(logits: torch.Tensor, min_p: Sequence[float]) -> torch.Tensor:
    """Keep tokens with at least `min_p` [R], in (0, 1], of the likeliest one's probability."""
    gap = logits.new_tensor([math.log(each) for each in min_p]).unsqueeze(-1)
    return _at_least(logits, logits.amax(dim=-1, keepdim=True) + gap)


def keep_top_k(logits: torch.Tensor, top_k: Sequence[int]) -> torch.Tensor:
    """Keep the `top_k` [R] likeliest tokens, each at least 1, and those tied with the last."""
    vocabulary = logits.shape[-1]
    last = torch.tensor([min(k, vocabulary) - 1 for k in top_k], device=logits.device)
    values = logits.topk(min(max(top_k), vocabulary), dim=-1).values
    return _at_least(logits, values.gather(-1, last.unsqueeze(-1)))


def keep_top_p(logits: torch.Tensor, top_p: Sequence[float]) -> torch.Tensor:
    """Keep the fewest likeliest tokens whose probabilities reach `top_p` [R], and their ties."""
    vocabulary = logits.shape[-1]
    p = logits.softmax(dim=-1)
    enough = torch.tensor(top_p, dtype=torch.float64, device=logits.device).unsqueeze(-1)
    looked_at = FIRST_LOOK_TOKENS
    # The few likeliest usually suffice, and finding them costs far less than sorting all.
    while True:
        looked_at = min(looked_at, vocabulary)
        largest = p.topk(looked_at, dim=-1).values
        sums = largest.cumsum(dim=-1, dtype=torch.float64)
        if looked_at == vocabulary or bool((sums[:, -1:] >= enough).all()):
            break
        looked_at *= 8
    kept = (sums < enough).sum(dim=-1, keepdim=True).clamp(max=looked_at - 1)
    return logits.masked_fill(p < largest.gather(-1, kept), -math.inf)


def _at_least(logits: torch.Tensor, threshold: torch.Tensor) -> torch.Tensor:
    # Not `>=`: a NaN must stay one.
    return logits.masked_fill(logits < threshold, -math.inf)
