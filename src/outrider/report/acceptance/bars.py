"""Small horizontal bars of Unicode blocks."""

from dataclasses import dataclass

_EIGHTHS = " ▏▎▍▌▋▊▉"
_FULL = "█"


@dataclass(frozen=True, slots=True)
class Bar:
    """A cell that shows a share of its width, 0 to 1; None where the share is unknown."""

    share: float | None

    def draw(self, width: int) -> str:
        """Return the bar in at most `width` characters; what is not 0 shows at least a sliver.

        >>> [Bar(share).draw(4) for share in (0, 0.001, 0.5, 1)]
        ['', '▏', '██', '████']
        """
        if not self.share or self.share < 0:
            return ""
        eighths = max(1, round(8 * width * min(self.share, 1.0)))
        full, rest = divmod(eighths, 8)
        return (_FULL * full + _EIGHTHS[rest]).rstrip()
