"""What counts of steps by accepted position tell of the histogram and of K."""

from collections.abc import Sequence
from itertools import pairwise

_STEPS_TO_INFER_K = 100


def histogram_of_positions(
    steps: int, accepted: int, positions: Sequence[int]
) -> tuple[int, ...] | None:
    """Return (H_0 ... H_K) from the steps that accepted each position, or None if none fits.

    None too where the positions are not known, rise, or do not sum to the accepted tokens.

    >>> histogram_of_positions(43, 10, [4, 3, 3])
    (39, 1, 0, 3)
    """
    falls = tuple(above - below for above, below in pairwise((steps, *positions, 0)))
    if not positions or min(falls) < 0 or sum(positions) != accepted:
        return None
    return falls


def evident_k(steps: int, drafted: int | None) -> int | None:
    """Return K where the source does not name it but every step drafted as many tokens.

    The mean draft length of fewer than 100 steps may be whole by chance, and then K is unknown.

    >>> evident_k(4816, 33712), evident_k(4816, 33711), evident_k(3, 9)
    (7, None, None)
    """
    if not drafted or steps < _STEPS_TO_INFER_K or drafted % steps:
        return None
    return drafted // steps
