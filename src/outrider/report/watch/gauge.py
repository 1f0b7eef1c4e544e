"""Where M lies in its band, drawn in a few characters."""

from outrider.acceptance.alarm_band import LEAST_M, Limits

CELLS = 9
WIDTH = CELLS + 4  # the ends, and a place beyond each


def gauge(m: float, limits: Limits, top: float | None) -> str:
    """Return the band with M in it, or beside it; blank where the band has no other end.

    An end without a limit is drawn at the least or the most that M can be: 1, and `top` = K + 1.

    >>> [gauge(m, Limits(1.5, 2.5), 4.0) for m in (1.0, 1.5, 2.0, 3.0)]
    ['●│·········│ ', ' │●········│ ', ' │····●····│ ', ' │·········│●']
    """
    low = LEAST_M if limits.low is None else limits.low
    high = top if limits.high is None else limits.high
    if high is None or high <= low:
        return ""
    side = limits.side(m)
    cells = ["·"] * CELLS
    if side is None:
        cells[min(CELLS - 1, max(0, int(CELLS * (m - low) / (high - low))))] = "●"
    ends = "│" if limits.low is not None else " ", "│" if limits.high is not None else " "
    outside = "●" if side == "low" else " ", "●" if side == "high" else " "
    return f"{outside[0]}{ends[0]}{''.join(cells)}{ends[1]}{outside[1]}"
