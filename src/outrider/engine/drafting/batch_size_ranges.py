"""K by the number of requests in a step: vLLM's `num_speculative_tokens_per_batch_size`."""

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from outrider.errors import InvalidSetting

SETTING = "num_speculative_tokens_per_batch_size"
EXAMPLE = "write for instance [[1, 4, 5], [5, 16, 2], [17, 64, 0]]"


@dataclass(frozen=True, slots=True)
class BatchSizeRanges:
    """Inclusive ranges [start, end, K] of batch sizes, in any order, the first from 1.

    A batch size between two ranges, or above the last, has the K of the range before it. No K
    counts for more than `num_speculative_tokens`; `clamped` holds the ranges that ask for more.
    K = 0 drafts nothing. Raises `InvalidSetting` for ranges that break these rules.
    """

    ranges: Sequence[Sequence[int]]
    num_speculative_tokens: int
    _starts: list[int] = field(init=False, repr=False, compare=False)
    _ks: list[int] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        ordered = _validated(self.ranges)
        object.__setattr__(self, "_starts", [start for start, _, _ in ordered])
        most = self.num_speculative_tokens
        object.__setattr__(self, "_ks", [min(k, most) for _, _, k in ordered])

    def k_for(self, batch_size: int) -> int:
        """Return K for a step of `batch_size` requests, 1 or more, those in prefill included.

        >>> BatchSizeRanges([[1, 4, 5], [9, 16, 2]], num_speculative_tokens=4).k_for(6)
        4
        """
        assert batch_size >= 1, "a step has at least one request"
        return self._ks[bisect_right(self._starts, batch_size) - 1]

    @property
    def clamped(self) -> list[Sequence[int]]:
        """The ranges whose K is above `num_speculative_tokens`, which is what they get."""
        return [each for each in self.ranges if each[2] > self.num_speculative_tokens]


def _validated(ranges: Sequence[Sequence[int]]) -> list[Sequence[int]]:
    """Return the ranges by ascending start."""
    if not ranges:
        raise InvalidSetting(f"an empty {SETTING}", "at least one range", EXAMPLE)
    for each in ranges:
        if not _is_triple(each):
            raise InvalidSetting(
                f"{each} in {SETTING}", "three whole numbers [start, end, K]", EXAMPLE
            )
        start, end, k = each
        if not 1 <= start <= end or k < 0:
            raise InvalidSetting(
                f"{list(each)} in {SETTING}", "1 <= start <= end and K of 0 or more", EXAMPLE
            )
    ordered = sorted(ranges, key=tuple)
    if ordered[0][0] != 1:
        raise InvalidSetting(
            f"{SETTING} that starts at batch size {ordered[0][0]}",
            "a range that starts at 1",
            EXAMPLE,
        )
    for before, after in pairwise(ordered):
        if after[0] <= before[1]:
            raise InvalidSetting(
                f"{list(before)} and {list(after)} in {SETTING}",
                "ranges that do not overlap",
                f"let the second start at {before[1] + 1} or later",
            )
    return ordered


def _is_triple(entry: object) -> bool:
    """A user's JSON can hold anything; a bool is not a number here."""
    if not isinstance(entry, list | tuple):
        return False
    return len(entry) == 3 and all(type(each) is int for each in entry)  # noqa: PLR2004
