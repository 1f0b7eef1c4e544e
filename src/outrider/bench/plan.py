"""The arms of a comparison, from what a user types."""

from collections.abc import Sequence

from outrider.errors import InvalidSetting
from outrider.records.arm import BASELINE, Arm, TieRule

TIE_RULES: tuple[TieRule, ...] = ("recent", "earliest")

MOST_DRAFTED = 64
MOST_LOOKED_UP = 1000


def draft_lengths(text: str) -> tuple[int, ...]:
    """Reads draft lengths such as "1,2,4,8", in the given order; raises InvalidSetting."""
    try:
        lengths = tuple(int(part) for part in text.split(","))
    except ValueError:
        lengths = ()
    in_range = all(1 <= length <= MOST_DRAFTED for length in lengths)
    if not lengths or not in_range or len(set(lengths)) < len(lengths):
        raise InvalidSetting(
            f"--k {text!r}",
            f"different whole numbers from 1 to {MOST_DRAFTED}, separated by commas",
            "use for instance --k 1,2,4,8 (no speculation is always measured as well)",
        )
    return lengths


def ngram_arms(
    lengths: Sequence[int], *, lookup_min: int, lookup_max: int, tie: str, fill: bool = False
) -> tuple[Arm, ...]:
    """No speculation, then n-gram drafting with each K; raises InvalidSetting."""
    chosen = next((rule for rule in TIE_RULES if rule == tie), None)
    if chosen is None:
        raise InvalidSetting(
            f"--ngram-tie {tie}", f"one of {', '.join(TIE_RULES)}", "choose one of them"
        )
    if not 1 <= lookup_min <= lookup_max <= MOST_LOOKED_UP:
        raise InvalidSetting(
            f"--prompt-lookup-min {lookup_min} and --prompt-lookup-max {lookup_max}",
            f"1 <= min <= max <= {MOST_LOOKED_UP}",
            "choose n-gram lengths in that order",
        )
    return (
        BASELINE,
        *(
            Arm(
                name=f"ngram K={length}",
                method="ngram",
                num_speculative_tokens=length,
                prompt_lookup_min=lookup_min,
                prompt_lookup_max=lookup_max,
                ngram_tie=chosen,
                ngram_fill=fill,
            )
            for length in lengths
        ),
    )
