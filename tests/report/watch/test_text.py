import doctest
import io
from datetime import UTC

import pytest
from rich.console import Console
from tests.report.watch.windows import BROKEN, GOOD, LOOPING, record, series, window

from outrider.acceptance.alarm_band import FixedBand, Limits
from outrider.records.windows import Window
from outrider.report.watch import gauge, segment
from outrider.report.watch.running import run_watch
from outrider.report.watch.text import WatchText
from outrider.report.watch.watcher import Watcher

BAND = Limits(1.3, 3.0)


def told(windows: list[Window], limits: Limits | None = BAND, *, learn: int = 20) -> list[str]:
    file = io.StringIO()
    band = None if limits is None else FixedBand(limits)
    run_watch(
        windows,
        Watcher(lambda _: band, by=(), learn=learn, min_steps=50, confirm=2),
        [WatchText(Console(file=file, width=80), learn=learn, min_steps=50, confirm=2, zone=UTC)],
    )
    return file.getvalue().splitlines()


def test_the_docstring_examples_hold() -> None:
    for module in (gauge, segment):
        results = doctest.testmod(module)
        assert results.attempted > 0
        assert results.failed == 0


def test_a_line_for_every_window_and_one_for_every_alarm() -> None:
    lines = told(series(GOOD, BROKEN, BROKEN, GOOD, GOOD))
    assert lines[:6] == [
        "time      segment    steps      M  band                       state",
        "04:40:10  K = 3        100   2.10  1.30–3.00    │····●····│   ok",
        "04:40:20  K = 3        100   1.04  1.30–3.00   ●│·········│   low",
        "04:40:30  K = 3        100   1.04  1.30–3.00   ●│·········│   ALARM low",
        lines[4],
        "04:40:40  K = 3        100   2.10  1.30–3.00    │····●····│   ok; ALARM low still on",
    ]
    assert lines[4].startswith(
        "04:40:30  ALARM low: K = 3: M = 1.04, below 1.30, 2 windows in a row. Check: read a few"
    )
    assert lines[7].startswith("04:40:50  cleared low: K = 3: M = 2.10")


def test_the_summary_names_the_alarms_with_their_times() -> None:
    lines = told(series(GOOD, LOOPING, LOOPING))
    assert lines[-3] == "Watched 3 windows in 30 s."
    assert "M = 3.33 over 300 steps in 3 windows, 3 judged: 1 alarm" in lines[-2]
    assert "alarm high: raised 2026-12-01 04:40:30, still on" in lines[-1]


def test_what_is_not_judged_says_why() -> None:
    lines = told(series(GOOD, (3, 1, 0, 0), ()), None)
    states = [line.split("–")[-1].strip() for line in lines[1:4]]
    assert states == ["learning 1 of 20", "too few steps", "idle"]
    assert lines[-1].endswith(
        "0 judged: 1 of the 20 to learn from, 1 of fewer than 50 steps"
        " (a longer --every or a lower --min-steps would do)"
    )


def test_a_server_out_of_reach_is_one_line() -> None:
    down = [window(number, problem="connection refused") for number in (1, 2, 3)]
    lines = told([window(0, record(GOOD)), *down])
    assert [line for line in lines if "refused" in line] == [
        "04:40:20  unreachable: connection refused"
    ]


def test_the_columns_make_room_for_a_longer_name() -> None:
    lines = told([*series(GOOD), window(1, record(GOOD), record((5, 95), {"model": "a" * 30}))])
    assert len([line for line in lines if line.startswith("time")]) == 2


@pytest.mark.parametrize(
    ("windows", "last"), [([], "Watched no window."), (series(()), "  no step had a draft")]
)
def test_a_watch_that_saw_nothing_says_so(windows: list[Window], last: str) -> None:
    assert told(windows)[-1] == last
