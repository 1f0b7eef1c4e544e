"""The likeliest token of each row of logits, found while they are made.

Each is looked at while it is in the nearest cache of the thread that made it: to read them all
afterwards takes as long as some layers do. For each lane of a vector, a thread keeps the greatest
logit that it saw there, the number of the vector that held it, and what all the others in this lane
weigh beside it, the sum of exp(x - greatest).
"""

from math import exp, inf, isfinite, isnan, log, nan
from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from outrider.engine.compiling import compiled
from outrider.engine.kernels.exponential import LOG2_E, power_of_two
from outrider.engine.kernels.formats.base import PANEL
from outrider.engine.kernels.vectors import LANES, VECTOR, constant, index, load, spread

_GREATEST, _PLACE, _OTHERS = range(3)
_LOWEST = np.finfo(np.float32).min
_IMPOSSIBLE = np.float32(-np.inf)
_NOWHERE = np.float32(-1)
_VECTORS = PANEL // LANES
_LANE_BITS = ir.IntType(LANES)


def nothing_seen(threads: int, rows: int) -> np.ndarray[Any, np.dtype[np.float32]]:
    """What `threads` have seen of `rows` of logits before there are any, [T, W, 3, LANES]."""
    seen = np.zeros((threads, rows, 3, LANES), np.float32)
    seen[:, :, _GREATEST] = _LOWEST
    seen[:, :, _PLACE] = _NOWHERE
    return seen


@compiled()
def look(logits: Any, panel: int, vocab_size: int, seen: Any) -> None:
    """Take the logits [W, V in whole panels] of the tokens of a `panel` into what is `seen`.

    That is [W, 3, LANES], of one thread. What is no token's logit becomes minus infinity.
    """
    column = panel * PANEL
    for r in range(logits.shape[0]):
        if column + PANEL > vocab_size:
            logits[r, vocab_size : column + PANEL] = _IMPOSSIBLE
        _look(logits, r, panel, seen)


@intrinsic
def _look(_typing: Any, logits: Any, row: Any, panel: Any, seen: Any) -> Any:
    """The logits of a row in a panel."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        array = context.make_array(signature.args[0])(context, builder, args[0])
        line = builder.mul(args[1], builder.extract_value(array.shape, 1))
        kept = context.make_array(signature.args[3])(context, builder, args[3]).data
        start = builder.mul(args[1], index(3 * LANES))
        addresses = [
            builder.gep(kept, [builder.add(start, index(part * LANES))]) for part in range(3)
        ]
        found = [
            cgutils.alloca_once_value(builder, load(builder, address)) for address in addresses
        ]
        for vector in range(_VECTORS):
            number = builder.add(builder.mul(args[2], index(_VECTORS)), index(vector))
            at = builder.add(line, builder.mul(number, index(LANES)))
            x = load(builder, builder.gep(array.data, [at]))
            _take(builder, x, spread(builder, builder.sitofp(number, VECTOR.element)), found)
        for address, result in zip(addresses, found, strict=True):
            place = builder.bitcast(address, VECTOR.as_pointer())
            builder.store(builder.load(result), place, align=4)
        return context.get_dummy_value()

    return types.void(logits, types.intp, types.intp, seen), codegen


def _take(builder: Any, x: Any, place: Any, found: list[Any]) -> None:
    """Take the logits `x` of the vector with the number `place` into what is `found` by lane."""
    greatest, held, others = (builder.load(part) for part in found)
    may_win = builder.bitcast(builder.fcmp_ordered(">=", x, greatest), _LANE_BITS)
    with builder.if_else(builder.icmp_unsigned("!=", may_win, _LANE_BITS(0))) as (then, otherwise):
        with then:
            earlier = builder.and_(
                builder.fcmp_ordered("==", x, greatest), builder.fcmp_ordered("<", place, held)
            )
            wins = builder.or_(builder.fcmp_ordered(">", x, greatest), earlier)
            above, below = builder.select(wins, x, greatest), builder.select(wins, greatest, x)
            weight = _weight(builder, below, above)
            lowered = builder.fmul(builder.fadd(others, constant(1.0)), weight)
            builder.store(above, found[_GREATEST])
            builder.store(builder.select(wins, place, held), found[_PLACE])
            builder.store(
                builder.select(wins, lowered, builder.fadd(others, weight)), found[_OTHERS]
            )
        with otherwise:  # nearly always
            weight = _weight(builder, x, greatest)
            builder.store(builder.fadd(others, weight), found[_OTHERS])


def _weight(builder: Any, below: Any, above: Any) -> Any:
    """exp(below - above)."""
    return power_of_two(builder, builder.fmul(builder.fsub(below, above), constant(LOG2_E)))


@compiled()
def decide(seen: Any, tokens: Any, log_odds: Any) -> None:
    """The likeliest token of each row into `tokens` [W], the first of equals, and its `log_odds`.

    `seen` is [T, W, 3, LANES]. The log-odds float64 [W] are ln(p / (1 - p)) of it by the softmax of
    its row; NaN where a row has a logit that is no number, or none that is finite.
    """
    threads, rows = seen.shape[:2]
    for r in range(rows):
        top, best = _IMPOSSIBLE, -1
        for t in range(threads):
            for lane in range(LANES):
                greatest = seen[t, r, _GREATEST, lane]
                token = int(seen[t, r, _PLACE, lane]) * LANES + lane
                if token >= 0 and (greatest > top or (greatest == top and token < best)):
                    top, best = greatest, token
        others = 0.0
        for t in range(threads):
            for lane in range(LANES):
                count = float(seen[t, r, _OTHERS, lane])
                if int(seen[t, r, _PLACE, lane]) * LANES + lane != best:
                    count += 1.0
                others += count * exp(float(seen[t, r, _GREATEST, lane] - top))
        tokens[r] = best
        if not isfinite(top) or isnan(others):
            log_odds[r] = nan
        else:
            log_odds[r] = -log(others) if others > 0 else inf
