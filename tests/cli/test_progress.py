import io
from collections.abc import Callable, Iterable

import pytest
from rich.console import Console

from outrider.cli.progress import LINE_EVERY_S, RunProgress


def clock_of(*readings: float) -> Callable[[], float]:
    return iter(readings).__next__


def lines(readings: Iterable[float], *, total: int = 10, done: int = 0) -> list[str]:
    """What is written to no terminal, when the clock reads so at the start and at each request."""
    start, *others = readings
    console = Console(file=io.StringIO(), force_terminal=False, width=100)
    with RunProgress(console, total=total, done=done, clock=clock_of(start, *others)) as progress:
        for _ in others:
            progress.advance()
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue().splitlines()


def test_a_short_run_writes_nothing() -> None:
    assert lines([100.0, 110.0, 120.0, 100.0 + LINE_EVERY_S - 0.1]) == []


def test_now_and_then_a_line_tells_the_time_left() -> None:
    # Two requests took 40 s, so the other eight take 160 s.
    assert lines([100.0, 120.0, 140.0]) == ["2/10 requests measured, about 0:02:40 left"]


def test_a_line_is_followed_by_another_only_after_a_while() -> None:
    found = lines([0.0, 31.0, 40.0, 50.0, 62.0, 70.0])
    assert [line.split()[0] for line in found] == ["1/10", "4/10"]


def test_the_rate_is_that_of_this_session() -> None:
    # Four were there before; one took 31 s, so the other five take 155 s.
    assert lines([0.0, 31.0], done=4) == ["5/10 requests measured, about 0:02:35 left"]


@pytest.mark.parametrize("done", [0, 3])
def test_a_terminal_shows_a_bar(done: int) -> None:
    console = Console(file=io.StringIO(), force_terminal=True, color_system=None, width=100)
    clock = clock_of(0.0, 100.0)
    with RunProgress(console, total=10, done=done, clock=clock) as progress:
        progress.advance()
    assert isinstance(console.file, io.StringIO)
    shown = console.file.getvalue()
    assert "measuring " in shown
    assert f" {done + 1}/10 requests " in shown
    assert " left " in shown
    assert "requests measured" not in shown
