"""From logits to tokens: the one greedy choice, the distribution p, and a draw from it."""

from collections.abc import Callable, Sequence
from typing import TypeVar

import numpy as np
import torch
from numpy.typing import NDArray

from outrider.engine.likeliest import known
from outrider.engine.sampling.parameters import SamplingParameters
from outrider.engine.sampling.truncation import keep_min_p, keep_top_k, keep_top_p

Setting = TypeVar("Setting", int, float)


def greedy_tokens(logits: torch.Tensor) -> torch.Tensor:
    """Return int64 [rows], the most likely token of each row of `logits` [rows, V], first on ties.

    Every greedy token comes from this one function, or from the model that made the logits and
    told, which takes the first too: plain and speculative decoding break ties alike.
    """
    if (likeliest := known(logits)) is not None:
        return torch.from_numpy(likeliest.tokens)
    if logits.device.type == "cpu" and logits.dtype == torch.float32:
        # On 16 rows of 49,152 ten times as fast as torch, whose max keeps indices lane by lane. Of
        # all rows at once NumPy makes a copy where they have padding between them.
        rows = logits.numpy()
        return torch.from_numpy(np.fromiter((row.argmax() for row in rows), np.int64, len(rows)))
    # On CPUs max is faster than argmax: 3 times in bfloat16.
    return logits.max(dim=-1).indices


def greedy_choices(logits: torch.Tensor) -> NDArray[np.int64]:
    """Return the `greedy_tokens` of `logits` [rows, V] where the host can use them."""
    if (likeliest := known(logits)) is not None:
        return likeliest.tokens
    found: NDArray[np.int64] = greedy_tokens(logits).cpu().numpy()
    return found


def target_distribution(
    logits: torch.Tensor, parameters: Sequence[SamplingParameters]
) -> torch.Tensor:
    """Return p float32 [R, V], what the next token of each row of `logits` [R, V] is drawn from.

    `parameters` has one entry per row. The temperature comes first, then min-p, top-k and top-p,
    each on what the one before it left, as in vLLM. A greedy row has p = 1 on its greedy token.
    A row is the same bits alone and among others. It is NaN where its logits are unusable.
    """
    divisors = [each.temperature or 1.0 for each in parameters]
    scaled = logits.float() / _column(divisors, logits.device)
    scaled = _where_asked(keep_min_p, scaled, [each.min_p for each in parameters], off=0.0)
    scaled = _where_asked(keep_top_k, scaled, [max(each.top_k, 0) for each in parameters], off=0)
    scaled = _where_asked(keep_top_p, scaled, [each.top_p for each in parameters], off=1.0)
    # Softmax also makes what is left sum to 1, row by row: a sum over [R, V] may add up a single
    # row in another order than one of many.
    p = scaled.softmax(dim=-1)
    greedy = [i for i, each in enumerate(parameters) if each.greedy]
    if greedy:
        chosen = greedy_tokens(logits[greedy])
        p[greedy] = torch.zeros_like(p[greedy]).scatter(-1, chosen.unsqueeze(-1), 1.0)
    return p


def probabilities(logits: torch.Tensor, temperatures: Sequence[float]) -> torch.Tensor:
    """Return p float32 [R, V], the softmax of each row of `logits` [R, V] at its own temperature.

    The `temperatures` are above 0, one per row. Unlike `target_distribution` it cuts nothing off.
    """
    return (logits.float() / _column(temperatures, logits.device)).softmax(dim=-1)


def draw(weights: torch.Tensor, u: torch.Tensor) -> torch.Tensor:
    """Return int64 [rows], token x of each row with probability weights[x] / sum(weights).

    `weights` [rows, V] are non-negative with a positive sum, `u` float64 [rows] in [0, 1). A
    token of weight 0 is never drawn.
    """
    cumulative = weights.double().cumsum(dim=-1)
    target = u.unsqueeze(-1) * cumulative[:, -1:]
    # The first token whose cumulative weight exceeds the target: one of weight 0 never does first.
    return torch.searchsorted(cumulative, target, right=True).squeeze(-1)


def unusable_rows(
    logits: torch.Tensor, greedy: NDArray[np.int64] | None = None
) -> NDArray[np.bool_]:
    """Return bool [R], the rows of `logits` [R, V] that no token can be chosen from.

    They hold a NaN or plus infinity, from a broken model, or minus infinity throughout, where
    what a request forbids leaves nothing. Where their `greedy` tokens [R] are known, the logits of
    these tell it: a NaN is the greatest of a row.
    """
    if logits.device.type == "cpu" and logits.dtype == torch.float32:
        # In a step of one request 0.6 of the time of torch's two operators.
        rows = logits.numpy()
        tops = rows.max(axis=-1) if greedy is None else rows[np.arange(len(rows)), greedy]
    elif greedy is None:
        tops = logits.amax(dim=-1).float().cpu().numpy()
    else:
        places = torch.from_numpy(greedy).to(logits.device).unsqueeze(-1)
        tops = logits.gather(-1, places).squeeze(-1).float().cpu().numpy()
    unusable: NDArray[np.bool_] = ~np.isfinite(tops)
    return unusable


def _column(values: Sequence[float], device: torch.device) -> torch.Tensor:
    return torch.tensor(values, dtype=torch.float32, device=device).unsqueeze(-1)


def _where_asked(
    keep: Callable[[torch.Tensor, Sequence[Setting]], torch.Tensor],
    logits: torch.Tensor,
    settings: Sequence[Setting],
    *,
    off: Setting,
) -> torch.Tensor:
    """Let `keep` have the rows of `logits`, which may be changed, whose setting is not `off`."""
    rows = [i for i, setting in enumerate(settings) if setting != off]
    if len(rows) == len(settings):
        return keep(logits, settings)
    if rows:
        logits[rows] = keep(logits[rows], [settings[i] for i in rows])
    return logits
