"""The ratio of two counts, kept exact."""

from fractions import Fraction


def ratio(part: int, whole: int) -> Fraction | None:
    """Return `part / whole` exactly, or None where `whole` is 0: zero of none is unknown, not zero.

    >>> ratio(0, 43), ratio(0, 0)
    (Fraction(0, 1), None)
    """
    return Fraction(part, whole) if whole else None
