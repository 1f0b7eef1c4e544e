"""Whether a text says one short thing over and over, as the output of a corrupted run does."""

import numpy as np

LONGEST_UNIT = 120
"""Characters of the longest unit that counts as short, about a line."""
FEWEST_CHARACTERS = 16
_FEWEST_REPEATS = 4
_MOST_READ = 2048
_REPEATED_SHARE = 0.8


def is_repetitive(text: str) -> bool:
    """Whether at least 80 % of the text repeats what stood one unit, of up to 120 characters, ago.

    A unit fits at least four times; the last 2048 characters decide, and under 16 tell nothing.

    >>> [is_repetitive(text) for text in ("!" * 20, "the " * 9, "To be, or not to be, that is it")]
    [True, True, False]
    """
    characters = np.frombuffer(text[-_MOST_READ:].encode("utf-32-le", "surrogatepass"), np.uint32)
    longest = min(LONGEST_UNIT, len(characters) // _FEWEST_REPEATS)
    if len(characters) < FEWEST_CHARACTERS:
        return False
    windows = np.lib.stride_tricks.sliding_window_view(characters, longest + 1)
    repeats = windows[:, :-1] == windows[:, -1:]
    return bool(repeats.mean(axis=0).max() >= _REPEATED_SHARE)
