"""The number of verification steps that a log line leaves out, from the ratios that it rounds."""

from collections.abc import Sequence

from outrider.records.reading import Basis

_MOST_TRIED = 20_000
_EXACT_THIRD_DECIMAL = 1000
"""With fewer steps three decimals of a rate belong to at most one count."""


def printed_steps(
    mean: str, accepted: int, drafted: int, rates: Sequence[str]
) -> tuple[int | None, Basis]:
    """Return the number of steps that gives what is printed, which the line itself leaves out.

    With full drafts it is D / K. Otherwise every number is tried that rounds to the printed mean;
    where not exactly one also rounds to every printed rate, it is an estimate.
    """
    if "nan" in rates or accepted > drafted:
        return None, "estimated"
    least, most = _bounds(mean, accepted, drafted, len(rates))
    if least > most:
        return None, "estimated"
    full, rest = divmod(drafted, len(rates) or 1)
    if rates and not rest and least <= full <= most and _fits(full, mean, accepted, rates):
        return full, "counted"
    if most - least > _MOST_TRIED:
        return (least + most) // 2, "estimated"
    fitting = [n for n in range(least, most + 1) if _fits(n, mean, accepted, rates)]
    if len(fitting) == 1:
        return fitting[0], "counted"
    return (fitting[len(fitting) // 2] if fitting else (least + most) // 2), "estimated"


def _bounds(mean: str, accepted: int, drafted: int, k: int) -> tuple[int, int]:
    """Return the fewest and the most steps: each drafts 1 to K tokens, and the mean is rounded."""
    least, most = max(1, -(-drafted // k) if k else 1), drafted
    if accepted:
        unit = 0.5 * 10.0 ** -_decimals(mean)
        beyond_one = float(mean) - 1
        if beyond_one <= -unit:
            return 1, 0
        least = max(least, int(accepted / (beyond_one + unit * 1.001)))
        if beyond_one > unit:
            most = min(most, int(accepted / (beyond_one - unit * 1.001)) + 1)
    return least, most


def _fits(steps: int, mean: str, accepted: int, rates: Sequence[str]) -> bool:
    if _printed(1 + accepted / steps, mean) != mean:
        return False
    counts = [round(float(rate) * steps) for rate in rates]
    if rates and steps < _EXACT_THIRD_DECIMAL and sum(counts) != accepted:
        return False
    return all(
        _printed(count / steps, rate) == rate for count, rate in zip(counts, rates, strict=True)
    )


def _printed(value: float, like: str) -> str:
    return f"{value:.{_decimals(like)}f}"


def _decimals(number: str) -> int:
    return len(number.partition(".")[2])
