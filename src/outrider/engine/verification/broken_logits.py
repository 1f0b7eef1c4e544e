"""Rows that no token can be chosen from, taken out before a verifier sees them."""

import math
from typing import NamedTuple

import numpy as np
import torch

from outrider.engine.drafting.draft import Draft
from outrider.engine.likeliest import known
from outrider.engine.sampling import unusable_rows


class BrokenRow(NamedTuple):
    """The first unusable row of a request, `row` tokens after what it has, and why."""

    request: int
    row: int
    reason: str


def take_out_broken_rows(logits: torch.Tensor, draft: Draft) -> list[BrokenRow]:
    """Find the requests of `draft` with an unusable row of `logits` [sum(lengths + 1), V].

    The unusable rows are set to 0, so that the others can be judged. A request has failed only if
    its verdict reaches the row: what follows a token that is rejected decides nothing. Costs one
    pass over the logits, unless the model has told their likeliest tokens: then all are finite.
    """
    if known(logits) is not None:
        return []
    unusable = unusable_rows(logits)
    if not unusable.any():
        return []
    found = []
    counts = draft.lengths + 1
    for request, (end, count) in enumerate(zip(counts.cumsum(), counts, strict=True)):
        rows = unusable[end - count : end]
        if rows.any():
            row = int(rows.argmax())
            found.append(BrokenRow(request, row, _reason(logits[end - count + row])))
    with torch.inference_mode():  # in which a model may have made them
        logits[torch.from_numpy(np.flatnonzero(unusable)).to(logits.device)] = 0
    return found


def _reason(row: torch.Tensor) -> str:
    if float(row.max()) == -math.inf:
        return "every token is forbidden"
    return "the target's logits are not finite numbers, as from a broken checkpoint"
