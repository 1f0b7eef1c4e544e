"""How much a vocabulary's other tokens weigh beside the likeliest, in one pass over the logits."""

from math import exp, log
from typing import Any

import numpy as np
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from outrider.engine.compiling import compiled
from outrider.engine.kernels.exponential import LOG2_E, power_of_two
from outrider.engine.kernels.softmax import folded_sum
from outrider.engine.kernels.vectors import INDEX, LANES, constant, index, load, spread

_UNSEEN = np.float32(-np.inf)


@compiled()
def weight_of_others(logits: Any, best: Any, temperature: Any) -> Any:
    """The sum of exp((x - top) / temperature) over all x in `logits` but top, that at `best`.

    `logits` is float32 [V], C-contiguous, and is the same afterwards; `temperature` is above 0.
    NaN where a logit is.
    """
    top, scale = logits[best], np.float32(1.0 / temperature)
    logits[best] = _UNSEEN
    whole = len(logits) - len(logits) % LANES
    total = _sum_below(logits, whole, top, scale)
    for i in range(whole, len(logits)):
        total += exp((logits[i] - top) * scale)
    logits[best] = top
    return total


@compiled()
def top_log_odds(logits: Any, tops: Any, temperatures: Any, most: Any) -> Any:
    """The log-odds float64 [R] of the tokens `tops` [R], each the likeliest of its row of `logits`.

    `logits` is float32 [R, V], contiguous along V; `temperatures` [R] are above 0. No log-odds are
    further from 0 than `most`.
    """
    found = np.empty(len(tops))
    for r in range(len(tops)):
        others = weight_of_others(logits[r], tops[r], temperatures[r])
        found[r] = -log(others) if others != 0 else most
        if found[r] > most:
            found[r] = most
        elif found[r] < -most:
            found[r] = -most
    return found


@intrinsic
def _sum_below(_typing: Any, logits: Any, count: Any, top: Any, scale: Any) -> Any:
    """The sum over the first `count` logits, a multiple of `LANES`."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        start = context.make_array(signature.args[0])(context, builder, args[0]).data
        top, scale = spread(builder, args[2]), spread(builder, args[3])
        scale = builder.fmul(scale, constant(LOG2_E))
        total = cgutils.alloca_once_value(builder, constant(0.0))
        vectors = builder.sdiv(args[1], index(LANES))
        with cgutils.for_range(builder, vectors, intp=INDEX) as loop:
            value = load(builder, builder.gep(start, [builder.mul(loop.index, index(LANES))]))
            power = power_of_two(builder, builder.fmul(builder.fsub(value, top), scale))
            builder.store(builder.fadd(builder.load(total), power), total)
        return folded_sum(builder, builder.load(total))

    return types.float32(logits, types.intp, types.float32, types.float32), codegen
