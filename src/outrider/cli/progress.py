"""How far a run is and how long it will take: a bar on a terminal, else a line now and then."""

from collections.abc import Callable
from datetime import timedelta
from types import TracebackType
from typing import Self

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)

LINE_EVERY_S = 30.0


class RunProgress:
    """A context in which `advance()` is called once a request."""

    def __init__(
        self, console: Console, *, total: int, done: int, clock: Callable[[], float]
    ) -> None:
        self._console = console
        self._total = total
        self._done = self._done_before = done
        self._clock = clock
        self._start = self._last_line = clock()
        self._bar = Progress(
            TextColumn("measuring"),
            BarColumn(),
            MofNCompleteColumn(),
            TextColumn("requests"),
            TimeElapsedColumn(),
            TextColumn("left"),
            TimeRemainingColumn(elapsed_when_finished=True),
            console=console,
            disable=not console.is_terminal,
            speed_estimate_period=120,
        )
        self._task = self._bar.add_task("", total=total, completed=done)

    def advance(self) -> None:
        """One more request is done."""
        self._done += 1
        self._bar.advance(self._task)
        now = self._clock()
        if self._console.is_terminal or now - self._last_line < LINE_EVERY_S:
            return
        self._last_line = now
        rate = (self._done - self._done_before) / (now - self._start)
        left = timedelta(seconds=round((self._total - self._done) / rate))
        self._console.print(f"{self._done}/{self._total} requests measured, about {left} left")

    def __enter__(self) -> Self:
        self._bar.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._bar.stop()
