"""Finds the first stop string in a text that comes in pieces."""

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Shown:
    """Text that may be shown now, and the stop string that ends it there, if one does."""

    text: str
    stop: str | None = None


class StopStrings:
    """Reads a text character by character and ends it where a stop string is first complete.

    Of several complete at the same character the longest counts. So where a text ends depends on
    the text alone, not on the pieces that it came in; vLLM takes the one listed first. What could
    still become a stop string is held back, unless stop strings are shown.
    """

    def __init__(self, stops: Sequence[str], *, include: bool) -> None:
        self._stops = tuple(stops)
        self._include = include
        self._beginning = ""  # the longest end of the text that begins a stop string

    def feed(self, piece: str, *, may_stop: bool = True) -> Shown:
        """Add `piece` to the text; a stop string that ends in it counts where it `may_stop`."""
        if not self._stops:
            return Shown(piece)
        known = len(self._beginning)
        window = self._beginning + piece
        shown_before = known if self._include else 0
        if may_stop and (found := self._first(window, known)):
            end, stop = found
            last = end if self._include else end - len(stop)
            self._beginning = ""
            return Shown(window[shown_before:last], stop)
        self._beginning = self._longest_beginning(window)
        last = len(window) if self._include else len(window) - len(self._beginning)
        return Shown(window[shown_before:last])

    def rest(self) -> str:
        """Give out what is held back, once the text has ended otherwise."""
        rest = "" if self._include else self._beginning
        self._beginning = ""
        return rest

    def _first(self, window: str, known: int) -> tuple[int, str] | None:
        """Where the first stop string ends that ends after the first `known` characters."""
        ends = []
        for stop in self._stops:
            start = window.find(stop, max(known + 1 - len(stop), 0))
            if start >= 0:
                ends.append((start + len(stop), start, stop))
        if not ends:
            return None
        end, _, stop = min(ends)
        return end, stop

    def _longest_beginning(self, text: str) -> str:
        longest = max(len(stop) for stop in self._stops) - 1
        for length in range(min(longest, len(text)), 0, -1):
            end = text[-length:]
            if any(len(stop) > length and stop.startswith(end) for stop in self._stops):
                return end
        return ""
