"""The word that a user may have meant."""

from collections.abc import Iterable
from difflib import get_close_matches


def nearest(word: str, known: Iterable[str]) -> str | None:
    """Return the one of `known` that is most like `word`, whatever its case; None if none is.

    >>> nearest("Num_Spec_Tokens", ["method", "num_speculative_tokens"])
    'num_speculative_tokens'
    """
    found = get_close_matches(word.lower(), list(known), n=1)
    return found[0] if found else None
