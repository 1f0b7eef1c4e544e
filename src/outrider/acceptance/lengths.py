"""Accepted and drafted lengths of verification steps, checked once for everyone who counts them."""

from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

Lengths: TypeAlias = Sequence[int] | npt.NDArray[np.integer[Any]]


def checked_lengths(
    accepted: Lengths, drafted: Lengths, k: int
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Return both as int64 [S], with 1 <= drafted <= k and 0 <= accepted <= drafted at every step.

    Steps without a draft are no verification steps and have no place here. Raises ValueError
    that names the first step out of line.
    """
    if k < 1:
        raise ValueError(f"K is {k}; expected at least 1, as no draft is shorter")
    a, d = _whole_numbers("accepted", accepted), _whole_numbers("drafted", drafted)
    if a.shape != d.shape:
        raise ValueError(f"{a.size} accepted lengths for {d.size} drafted ones; expected as many")
    _check_all("drafted", d, (d >= 1) & (d <= k), f"a verification step to draft 1 to K = {k}")
    _check_all("accepted", a, (a >= 0) & (a <= d), "0 to the number drafted at that step")
    return a, d


def _whole_numbers(name: str, values: Lengths) -> npt.NDArray[np.int64]:
    array = np.asarray(values)
    if array.ndim != 1:
        raise ValueError(f"{name} has {array.ndim} dimensions; expected one number per step")
    # An empty list carries no type of its own: numpy calls it float.
    if array.size and array.dtype.kind not in "iu":
        raise ValueError(f"{name} holds {array.dtype} values; expected whole numbers")
    return array.astype(np.int64)


def _check_all(
    name: str, values: npt.NDArray[np.int64], good: npt.NDArray[np.bool_], expected: str
) -> None:
    if not good.all():
        step = int(np.argmin(good))
        raise ValueError(f"{name} is {values[step]} at step {step}; expected {expected}")
