"""Log-probabilities of the tokens that were chosen, and of the likeliest ones beside them."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray

WHOLE_VOCABULARY = -1
"""As a number of top tokens: all of them."""


@dataclass(frozen=True, slots=True, eq=False)
class Logprobs:
    """What R rows of logits say of R tokens, in natural logarithms.

    `chosen` float32 [R] belongs to the chosen tokens and `ranks` int64 [R] counts the tokens at
    least as likely, so 1 is the likeliest. `top_ids` int64 [R, n] and `top` float32 [R, n] are the
    n likeliest tokens, likeliest first, the smaller id first on ties.
    """

    chosen: NDArray[np.float32]
    ranks: NDArray[np.int64]
    top_ids: NDArray[np.int64]
    top: NDArray[np.float32]


def token_logprobs(
    logits: torch.Tensor, chosen: Sequence[int] | NDArray[np.int32], top_tokens: int
) -> Logprobs:
    """Return what `logits` [R, V] say of the tokens `chosen` [R] and of the `top_tokens` likeliest.

    Given the target's raw logits these are vLLM's `raw_logprobs`, its default, whatever the
    sampling settings are. `top_tokens` may be more than V, or `WHOLE_VOCABULARY`.

    >>> values = token_logprobs(torch.tensor([[0.5, 0.25, 0.25]]).log(), [1], 2)
    >>> values.ranks.tolist(), values.top_ids.tolist()
    ([3], [[0, 1]])
    """
    vocabulary = logits.shape[-1]
    count = vocabulary if top_tokens == WHOLE_VOCABULARY else min(top_tokens, vocabulary)
    all_values = logits.float().log_softmax(dim=-1)
    index = torch.as_tensor(np.asarray(chosen, np.int64), device=logits.device).unsqueeze(-1)
    values = all_values.gather(-1, index)
    ranks = (all_values >= values).sum(dim=-1)
    top_ids = all_values.topk(count, dim=-1).indices.sort(dim=-1).values
    top, order = all_values.gather(-1, top_ids).sort(dim=-1, descending=True, stable=True)
    return Logprobs(
        values.squeeze(-1).cpu().numpy(),
        ranks.cpu().numpy(),
        top_ids.gather(-1, order).cpu().numpy(),
        top.cpu().numpy(),
    )
