"""Figures as cells: with interval, marked where not counted, or the reason for being missing."""

from collections.abc import Iterable
from dataclasses import dataclass, field

from outrider.acceptance.estimate import Estimate
from outrider.report.cells import MISSING, Footnotes, number

PERCENT = 100
APPROXIMATELY = "≈"
NO_REQUESTS = "the source does not tell how many answers it covers"
NO_DRAFTED = "the source does not tell how many tokens were drafted"
_FINE = 0.02


@dataclass(slots=True)
class FigureCells:
    """The cells of one table, and the footnotes that they need.

    Where all figures lack their intervals for one reason, `shared` is it, and is told once instead
    of at every figure.
    """

    shared: str | None = None
    notes: Footnotes = field(default_factory=Footnotes)
    labels: dict[str, None] = field(default_factory=dict)

    @classmethod
    def of(cls, figures: Iterable[Estimate]) -> "FigureCells":
        """Return the cells for a table of those figures."""
        reasons = {
            figure.reason if figure.interval is None else None
            for figure in figures
            if figure.value is not None
        }
        return cls(shared=reasons.pop() if len(reasons) == 1 else None)

    def percent(self, figure: Estimate, *, interval: bool = True, rough: str | None = None) -> str:
        """Return a share in percent; `rough` says why it is not counted, if so."""
        return self.rate(figure, 1, scale=PERCENT, interval=interval, rough=rough)

    def mean(self, figure: Estimate, *, interval: bool = True, rough: str | None = None) -> str:
        """Return a mean number of tokens with as many decimals as its interval bears."""
        return self.rate(figure, mean_decimals(figure), interval=interval, rough=rough)

    def rate(
        self,
        figure: Estimate,
        decimals: int,
        *,
        scale: float = 1,
        interval: bool = True,
        rough: str | None = None,
    ) -> str:
        """Return `scale` times any figure."""
        show = self.notes.interval if interval and self.shared is None else self.notes.value
        shown = show(figure, decimals, scale=scale)
        return shown if figure.value is None else self._marked(shown, rough)

    def count(self, count: int | None, *, why: str = "", rough: str | None = None) -> str:
        """Return a count, or the mark of `why` it is unknown."""
        if count is None:
            return self.notes.value(Estimate.missing(why), 0)
        return self._marked(number(count), rough)

    def footnotes(self) -> tuple[str, ...]:
        """Return what the marks of the cells mean, and why there are no intervals."""
        labels = tuple(f"{APPROXIMATELY} {label}" for label in self.labels)
        shared = (f"No intervals: {self.shared}.",) if self.shared else ()
        return (*labels, *self.notes.lines(), *shared)

    def _marked(self, shown: str, rough: str | None) -> str:
        if rough is None or shown.startswith(MISSING):
            return shown
        self.labels.setdefault(rough)
        return f"{APPROXIMATELY}{shown}"


def mean_decimals(figure: Estimate) -> int:
    """Return 2, or 3 where the interval is narrow enough for a third decimal to tell something."""
    interval = figure.interval
    return 3 if interval is not None and interval.high - interval.low < _FINE else 2


def percent(share: float | None) -> str:
    """Return a share in percent with one decimal."""
    return number(None if share is None else PERCENT * share, 1)
