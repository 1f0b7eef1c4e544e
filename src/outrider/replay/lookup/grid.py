"""The settings that are asked for: every combination of the values of each option."""

from collections.abc import Sequence
from dataclasses import dataclass

from outrider.engine.drafting.lookup.suffix_settings import SuffixSettings
from outrider.errors import InvalidSetting
from outrider.records.validation import LONGEST_DRAFT

MOST_VALUES = 64
"""Values of one option, and settings in all: more are no comparison."""

_SUFFIX = SuffixSettings()


@dataclass(frozen=True, slots=True)
class Grid:
    """The values of each option, at least one, in the order in which they were typed.

    `ngram_fill` and `warm_cache` add a setting to each, to compare it with.
    """

    prompt_lookup_min: tuple[int, ...] = (2,)
    prompt_lookup_max: tuple[int, ...] = (5,)
    ngram_tie: tuple[str, ...] = ("recent",)
    ngram_fill: bool = False
    max_tree_depth: tuple[int, ...] = (_SUFFIX.max_tree_depth,)
    max_cached_requests: tuple[int, ...] = (_SUFFIX.max_cached_requests,)
    max_spec_factor: tuple[float, ...] = (_SUFFIX.max_spec_factor,)
    min_token_prob: tuple[float, ...] = (_SUFFIX.min_token_prob,)
    warm_cache: bool = False


def whole_numbers(
    option: str, text: str, *, least: int = 1, most: int = LONGEST_DRAFT
) -> tuple[int, ...]:
    """Return the numbers of a list such as "1,2,8" or "1:4,8", where 1:4 is 1, 2, 3, 4.

    Each comes once, in ascending order. Raises InvalidSetting for anything else.

    >>> whole_numbers("--k", "8,1:3")
    (1, 2, 3, 8)
    """
    expected = f"whole numbers from {least} to {most}, as 4 or 1,2,8 or 1:{min(most, 16)}"
    found: set[int] = set()
    for part in text.split(","):
        first, colon, last = part.strip().partition(":")
        ends = (first, last) if colon else (first, first)
        if not all(
            end.isascii() and end.isdecimal() and len(end) <= len(str(most)) for end in ends
        ):
            raise InvalidSetting(f"{option} {text!r}", expected, "write it like that")
        low, high = map(int, ends)
        if not least <= low <= high <= most:
            raise InvalidSetting(f"{option} {text!r} with {part.strip()}", expected, "correct it")
        found.update(range(low, high + 1))
    if len(found) > MOST_VALUES:
        raise InvalidSetting(
            f"{option} {text!r}, {len(found)} values", f"at most {MOST_VALUES}", "ask for fewer"
        )
    return tuple(sorted(found))


def chosen(option: str, text: str, valid: Sequence[str]) -> tuple[str, ...]:
    """Return the words of a list; InvalidSetting for one that is not among the `valid`."""
    words = tuple(dict.fromkeys(part.strip() for part in text.split(",")))
    for word in words:
        if word not in valid:
            raise InvalidSetting(
                f"{option} {word!r}", f"one of {', '.join(valid)}", "use one of these"
            )
    return words


def numbers(option: str, text: str, *, most: float) -> tuple[float, ...]:
    """Return the numbers from 0 to `most` of a list; InvalidSetting for anything else."""
    found = []
    for part in text.split(","):
        try:
            number = float(part)
        except ValueError:
            number = -1.0
        if not 0 <= number <= most:
            raise InvalidSetting(
                f"{option} {text!r} with {part.strip()!r}",
                f"numbers from 0 to {most:g}",
                "correct it",
            )
        found.append(number + 0.0)  # which makes 0 of -0
    return tuple(dict.fromkeys(found))
