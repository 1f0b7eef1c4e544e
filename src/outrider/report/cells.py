"""Figures as table cells, and the reasons of the missing ones as footnotes."""

from dataclasses import dataclass, field
from string import ascii_lowercase

from outrider.acceptance.estimate import Estimate

MISSING = "–"


def number(value: float | None, decimals: int = 0) -> str:
    """Return the value with thousands marked and that many decimals, or `MISSING` for None."""
    return MISSING if value is None else f"{value:,.{decimals}f}"


def counted(count: int, noun: str) -> str:
    """Return the count with its noun, which takes an s in the plural, e.g. "24 prompts"."""
    return f"{number(count)} {noun}{'' if count == 1 else 's'}"


def interval_text(figure: Estimate, decimals: int, *, scale: float = 1, unit: str = "") -> str:
    """Return the figure with its interval where it has one, e.g. "3.90 (3.78–4.03)"."""
    if figure.value is None:
        return "unknown"
    text = f"{number(scale * figure.value, decimals)}{unit}"
    if figure.interval is None:
        return text
    low, high = (scale * end for end in (figure.interval.low, figure.interval.high))
    return f"{text} ({number(low, decimals)}–{number(high, decimals)})"


@dataclass(slots=True)
class Footnotes:
    """The distinct reasons that the cells of one table refer to by letter."""

    reasons: list[str] = field(default_factory=list)

    def value(self, figure: Estimate, decimals: int, *, scale: float = 1) -> str:
        """Return `scale` times the figure, without its interval."""
        if figure.value is None:
            return f"{MISSING} {self._mark(figure.reason)}"
        return number(scale * figure.value, decimals)

    def interval(self, figure: Estimate, decimals: int, *, scale: float = 1) -> str:
        """Return `scale` times the figure with its interval, or why it has none."""
        if figure.value is None:
            return self.value(figure, decimals)
        text = interval_text(figure, decimals, scale=scale)
        return f"{text} {self._mark(figure.reason)}" if figure.interval is None else text

    def lines(self) -> tuple[str, ...]:
        """Return one line per reason."""
        return tuple(f"{_letter(place)} {reason}" for place, reason in enumerate(self.reasons))

    def _mark(self, reason: str | None) -> str:
        reason = reason or "unknown"
        if reason not in self.reasons:
            self.reasons.append(reason)
        return _letter(self.reasons.index(reason))


def _letter(place: int) -> str:
    """Return [a] to [z], then [aa], [ab] and so on."""
    letters = ""
    place += 1
    while place:
        place, last = divmod(place - 1, len(ascii_lowercase))
        letters = ascii_lowercase[last] + letters
    return f"[{letters}]"
