from collections.abc import Iterable

import numpy as np
import pytest
from tests.report.watch.windows import (
    BROKEN,
    EVERY_S,
    GOOD,
    LOOPING,
    START_S,
    record,
    series,
    window,
)

from outrider.acceptance.alarm_band import FixedBand, Limits
from outrider.records.windows import Window
from outrider.report.watch.document import WindowReport
from outrider.report.watch.watcher import BandOf, Watcher


def between(low: float | None, high: float | None) -> BandOf:
    return lambda _: FixedBand(Limits(low, high))


def watcher(
    band_of: BandOf = lambda _: None, *, by: tuple[str, ...] = (), learn: int = 20, confirm: int = 2
) -> Watcher:
    return Watcher(band_of, by=by, learn=learn, min_steps=50, confirm=confirm)


def seen(watching: Watcher, windows: Iterable[Window]) -> list[WindowReport]:
    return [watching.see(each) for each in windows]


def states(reports: list[WindowReport]) -> list[str]:
    return [row.state for report in reports for row in report.rows]


def events(reports: list[WindowReport]) -> list[tuple[int, str, str]]:
    """The number of the window, what happened, and the side."""
    return [
        (number, event.kind, event.side)
        for number, report in enumerate(reports)
        for event in report.events
    ]


def varied(rng: np.random.Generator) -> tuple[int, ...]:
    return tuple(int(n) for n in rng.multinomial(300, np.array(GOOD) / 100))


def test_an_alarm_is_raised_and_cleared_on_either_side() -> None:
    watching = watcher(between(1.3, 3.0))
    reports = seen(watching, series(GOOD, BROKEN, BROKEN, GOOD, GOOD, LOOPING, LOOPING, LOOPING))
    assert states(reports) == ["inside", "low", "low", "inside", "inside", "high", "high", "high"]
    assert events(reports) == [
        (2, "raised", "low"), (4, "cleared", "low"), (6, "raised", "high"),
    ]  # fmt: skip
    [segment] = watching.summary().segments
    low, high = segment.alarms
    assert (low.since_s, low.until_s) == (START_S + 3 * EVERY_S, START_S + 5 * EVERY_S)
    assert (high.side, high.until_s) == ("high", None)
    assert watching.summary().alarmed


def test_a_single_window_outside_is_no_alarm() -> None:
    watching = watcher(between(1.3, None))
    assert events(seen(watching, series(BROKEN, GOOD, BROKEN, GOOD))) == []
    assert not watching.summary().alarmed


def test_small_and_idle_windows_neither_alarm_nor_break_a_row() -> None:
    few = tuple(n // 10 for n in BROKEN)
    watching = watcher(between(1.3, None))
    reports = seen(watching, series(BROKEN, few, (), few, BROKEN))
    assert states(reports) == ["low", "too_few_steps", "idle", "too_few_steps", "low"]
    assert events(reports) == [(4, "raised", "low")]


def test_a_learned_band_lets_pass_what_it_learned_and_no_more() -> None:
    rng = np.random.default_rng(0)
    watching = watcher(learn=20)
    learning = seen(watching, series(*(varied(rng) for _ in range(20))))
    assert set(states(learning)) == {"learning"}
    assert [row.learned for report in learning for row in report.rows] == [*range(1, 21)]
    [told] = learning[-1].notices
    assert "learned M = 2.08, in a window of 300 steps" in told
    usual = seen(watching, series(*(varied(rng) for _ in range(30))))
    assert set(states(usual)) == {"inside"}
    broken = [tuple(3 * n for n in BROKEN)] * 2
    assert events(seen(watching, series(*broken))) == [(1, "raised", "low")]


def thin(rng: np.random.Generator, *rates: float) -> list[Window]:
    """A window of 60 steps for each rate, of which that share accepts one token of three."""
    accepting = [int(rng.binomial(60, rate)) for rate in rates]
    return series(*((60 - n, n, 0, 0) for n in accepting))


def test_windows_too_small_to_be_too_low_are_judged_together() -> None:
    rng = np.random.default_rng(1)
    watching = watcher(learn=20)
    [told] = seen(watching, thin(rng, *[0.2] * 20))[-1].notices
    assert "gathered from windows in a row and judged as one" in told
    assert events(seen(watching, thin(rng, *[0.2] * 30))) == []
    broken = seen(watching, thin(rng, *[0.0] * 20))
    assert events(broken)[0][1:] == ("raised", "low")
    rows = [row for report in broken for row in report.rows]
    judged = [row for row in rows if row.state == "low"]
    assert {row.state for row in rows} == {"gathering", "low"}
    for row in judged:
        assert row.pool is not None
        assert row.limits is not None
        assert row.limits.low is not None
        assert row.pool.steps == 60 * row.pool.windows > row.steps == 60
    assert events(seen(watching, thin(rng, *[0.2] * 20)))[0][1:] == ("cleared", "low")
    [segment] = watching.summary().segments
    assert segment.judged > 0
    assert segment.unjudged["learning"] == 20
    assert segment.judged + sum(segment.unjudged.values()) == segment.windows == 90


def test_what_is_too_high_is_not_waited_for() -> None:
    rng = np.random.default_rng(1)
    watching = watcher(learn=20)
    seen(watching, thin(rng, *[0.2] * 20))
    looping = seen(watching, series(*[(1, 1, 1, 57)] * 2))
    assert states(looping) == ["high", "high"]
    assert events(looping) == [(1, "raised", "high")]


def test_small_windows_are_not_learned_from() -> None:
    reports = seen(watcher(learn=5), series(GOOD, (3, 1, 0, 0), GOOD))
    assert [row.learned for report in reports for row in report.rows] == [1, 1, 2]


def test_a_band_that_was_learned_from_a_broken_drafter_says_so() -> None:
    reports = seen(watcher(learn=5), series(*[(300, 0, 0, 0)] * 5))
    [told] = reports[-1].notices
    assert "yet in what was learned: broken drafter" in told


def test_a_band_without_a_low_end_says_so() -> None:
    noisy = [(50, 5, 0, 0), (10, 5, 10, 30), (55, 0, 0, 0), (5, 5, 5, 40), (50, 1, 1, 1)]
    [told] = seen(watcher(learn=5), series(*noisy))[-1].notices
    assert "no M of so small a window is too low: a longer --every would tell" in told


def test_each_segment_has_an_alarm_of_its_own() -> None:
    windows = [
        window(number, record(GOOD, {"rank": "0"}), record(BROKEN, {"rank": "1"}))
        for number in range(2)
    ]
    watching = watcher(between(1.3, None), by=("rank",))
    reports = seen(watching, windows)
    assert [row.name for row in reports[0].rows] == ["rank 0, K = 3", "rank 1, K = 3"]
    [event] = reports[1].events
    assert event.row.name == "rank 1, K = 3"


def test_different_models_and_k_are_never_mixed() -> None:
    [report] = seen(
        watcher(),
        [window(0, record(GOOD, {"model": "a"}), record(GOOD, {"model": "b"}), record((5, 5)))],
    )
    assert sorted(row.name for row in report.rows) == [
        "model a, K = 3", "model b, K = 3", "model unknown, K = 1",
    ]  # fmt: skip


def test_a_source_out_of_reach_is_told_once_and_so_is_its_return() -> None:
    down = [window(number, problem="connection refused") for number in (1, 2)]
    reports = seen(
        watcher(between(1.3, None)), [window(0, record(GOOD)), *down, window(3, record(GOOD))]
    )
    assert [report.notices for report in reports] == [
        (), ("unreachable: connection refused",), (),
        ("reachable again; the window covers the time without it",),
    ]  # fmt: skip
    assert [len(report.rows) for report in reports] == [1, 0, 0, 1]
    assert [report.reached for report in reports] == [True, False, False, True]


def test_a_restart_of_the_server_is_told() -> None:
    [report] = seen(watcher(), [window(0, record(GOOD, {"counters_reset": "yes"}))])
    assert report.notices == ("the counters began anew: the server restarted",)


def test_a_segment_without_a_band_is_shown_and_never_judged() -> None:
    watching = watcher(lambda _: "the baseline has no such segment")
    reports = seen(watching, series(BROKEN, BROKEN, BROKEN))
    assert set(states(reports)) == {"no_band"}
    assert [len(report.notices) for report in reports] == [1, 0, 0]
    [segment] = watching.summary().segments
    assert (segment.judged, segment.unjudged) == (0, {"no_band": 3})


def test_the_summary_adds_up_all_windows() -> None:
    watching = watcher(between(1.3, None))
    seen(watching, series(GOOD, (), BROKEN, GOOD))
    summary = watching.summary()
    [segment] = summary.segments
    assert (summary.windows, segment.windows, segment.steps) == (4, 3, 300)
    assert segment.mean_acceptance_length.value == pytest.approx(1 + (110 + 4 + 110) / 300)


def test_the_shape_of_a_window_is_flagged() -> None:
    reports = seen(watcher(between(None, 3.5)), series((60, 0, 0, 40)))
    assert [flag.code for flag in reports[0].rows[0].flags] == ["all_or_nothing"]


def test_more_segments_than_anyone_can_read_are_told_once_and_the_first_watched_on() -> None:
    watching = watcher(by=("user",))
    reports = [
        watching.see(
            window(number, *(record((3, 3), {"user": f"u{number}-{n}"}) for n in range(60)))
        )
        for number in range(6)
    ]
    told = "only the first 256 segments are watched; choose a --by with fewer values"
    assert [report.notices for report in reports] == [(), (), (), (), (told,), ()]
    assert [len(report.rows) for report in reports] == [60, 120, 180, 240, 256, 256]


def test_models_too_many_to_tell_apart_are_told_once() -> None:
    watching = watcher()
    windows = [
        window(number, *(record(GOOD, {"model": f"m{n}"}) for n in range(65))) for number in (0, 1)
    ]
    assert [report.notices for report in seen(watching, windows)] == [
        ("too many values of model: watched as one",), (),
    ]  # fmt: skip
