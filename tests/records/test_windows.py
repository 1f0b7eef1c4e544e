from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import pytest

from outrider.errors import NothingUsable, UnreadableSource
from outrider.records.reading import AcceptanceRecord, Place
from outrider.records.scrape import Scrape, read_scrape
from outrider.records.sources.live import StreamEnded
from outrider.records.windows import Window, scraped_windows, streamed_windows

START_S = 1_000_000.0


@dataclass
class Clock:
    """Time that passes only in `sleep`; Ctrl-C comes at `interrupt_at_s`."""

    now_s: float = START_S
    interrupt_at_s: float | None = None
    slept: list[float] = field(default_factory=list)

    def __call__(self) -> float:
        return self.now_s

    def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        if self.interrupt_at_s is not None and self.now_s + seconds >= self.interrupt_at_s:
            self.now_s, self.interrupt_at_s = self.interrupt_at_s, None
            raise KeyboardInterrupt
        self.now_s += seconds


def page(steps: int, accepted: int, engine: int = 0, created: float = 1.0) -> str:
    labels = f'engine="{engine}",model_name="m"'
    name = "vllm:spec_decode_num_"
    return (
        f"{name}drafts_total{{{labels}}} {steps}\n"
        f"{name}accepted_tokens_total{{{labels}}} {accepted}\n"
        f"{name}draft_tokens_total{{{labels}}} {steps}\n"
        f'{name}accepted_tokens_per_pos_total{{{labels},position="0"}} {accepted}\n'
        f"{name}drafts_created{{{labels}}} {created}\n"
    )


def failure() -> UnreadableSource:
    return UnreadableSource("connection refused", "a page", "check")


Page = str | UnreadableSource


def server(pages: list[Page]) -> Callable[[], Scrape]:
    coming = iter(pages)

    def scrape() -> Scrape:
        told = next(coming)
        if isinstance(told, UnreadableSource):
            raise told
        return read_scrape(told)

    return scrape


def scraped(pages: list[Page], clock: Clock | None = None, **changes: Any) -> Iterator[Window]:
    clock = clock or Clock()
    settings: dict[str, Any] = {
        "every_s": 10.0,
        "for_s": 10.0 * (len(pages) - 1),
        "by_rank": False,
        "clock": clock,
        "sleep": clock.sleep,
        **changes,
    }
    return scraped_windows("http://server", server(pages), **settings)


def sums(window: Window) -> list[tuple[int, int]]:
    cells = window.collection.cells.values()
    return [(totals.count("steps"), totals.count("accepted")) for totals in cells]


def test_a_window_is_what_a_server_did_between_two_scrapes() -> None:
    windows = list(scraped([page(100, 40), page(160, 70), page(160, 70), page(200, 71)]))
    assert [sums(window) for window in windows] == [[(60, 30)], [], [(40, 1)]]
    assert [window.end_s - window.start_s for window in windows] == [10.0] * 3
    assert windows[0].start_s == START_S


def test_a_window_without_a_scrape_is_in_the_next_one() -> None:
    windows = list(scraped([page(100, 40), failure(), page(180, 80)]))
    assert [window.problem for window in windows] == ["connection refused", None]
    assert sums(windows[1]) == [(80, 40)]
    assert windows[1].start_s == START_S
    assert windows[1].end_s == START_S + 20


def test_a_server_that_restarts_counts_from_there() -> None:
    [window] = scraped([page(100, 40), page(130, 90, created=5.0)])
    assert sums(window) == [(130, 90)]


def test_a_page_without_counters_is_a_gap_and_not_a_new_start() -> None:
    windows = list(scraped([page(100, 40), "# nothing yet\n", page(150, 60)]))
    assert [sums(window) for window in windows] == [[], [(50, 20)]]
    assert "no speculative decoding counters" in (windows[0].problem or "")


def test_each_rank_can_be_told_apart() -> None:
    before, after = page(10, 5) + page(10, 5, engine=1), page(20, 15) + page(40, 5, engine=1)
    [together] = scraped([before, after])
    assert sums(together) == [(40, 10)]
    [apart] = scraped([before, after], by_rank=True)
    assert sorted(sums(apart)) == [(10, 10), (30, 0)]
    place = apart.collection.keys.index("rank")
    assert {values[place] for *_, values in apart.collection.cells} == {"0", "1"}


def test_a_server_out_of_reach_at_the_start_is_a_failure() -> None:
    with pytest.raises(UnreadableSource):
        next(scraped([failure(), page(1, 1)]))


def test_a_server_without_counters_at_the_start_is_a_failure() -> None:
    with pytest.raises(NothingUsable, match="speculation is off"):
        next(scraped(["# TYPE up gauge\nup 1\n", page(1, 1)]))


def test_ctrl_c_closes_the_window_that_is_open() -> None:
    clock = Clock(interrupt_at_s=START_S + 14)
    windows = scraped([page(0, 0), page(50, 10), page(60, 18)], clock, for_s=None)
    assert sums(next(windows)) == [(50, 10)]
    last = next(windows)
    assert (sums(last), last.end_s) == ([(10, 8)], START_S + 14)
    with pytest.raises(KeyboardInterrupt):
        next(windows)


def test_windows_end_with_the_time_that_was_asked_for() -> None:
    windows = list(scraped([page(n, n) for n in range(9)], for_s=25.0))
    assert [window.end_s - START_S for window in windows] == [10.0, 20.0, 25.0]


def test_a_slow_consumer_makes_longer_windows_and_not_a_backlog() -> None:
    clock = Clock()
    windows = scraped([page(n, n) for n in range(9)], clock, for_s=60.0)
    ends = []
    for window in windows:
        ends.append(window.end_s - START_S)
        if window.end_s == START_S + 10:
            clock.now_s += 25
    assert ends == [10.0, 40.0, 50.0, 60.0]


def answer(name: str, histogram: tuple[int, ...] = (5, 5)) -> AcceptanceRecord:
    return AcceptanceRecord(
        engine="vllm", id=name, k=len(histogram) - 1, histogram=histogram, tags={"kind": name[0]}
    )


def stream(
    clock: Clock, arrivals: list[tuple[float, AcceptanceRecord]]
) -> Callable[[float], tuple[Place, AcceptanceRecord] | None]:
    """Records by the second at which they arrive, then the end."""
    coming = list(arrivals)

    def take(timeout_s: float) -> tuple[Place, AcceptanceRecord] | None:
        if not coming:
            raise StreamEnded
        at_s = START_S + coming[0][0]
        if at_s > clock() + timeout_s:
            clock.sleep(timeout_s)
            return None
        clock.sleep(max(0.0, at_s - clock()))
        return Place("-", 1), coming.pop(0)[1]

    return take


def streamed(
    clock: Clock, arrivals: list[tuple[float, AcceptanceRecord]], by: tuple[str, ...] = ()
) -> Iterator[Window]:
    return streamed_windows(stream(clock, arrivals), by=by, every_s=10.0, for_s=None, clock=clock)


def test_what_arrives_is_cut_into_windows_until_the_stream_ends() -> None:
    arrivals = [(1.0, answer("a1")), (9.0, answer("a2")), (31.0, answer("a3"))]
    windows = list(streamed(Clock(), arrivals))
    assert [sums(window) for window in windows] == [[(20, 10)], [], [], [(10, 5)]]
    assert windows[-1].end_s == START_S + 31


def test_an_answer_that_comes_again_counts_once() -> None:
    arrivals = [(1.0, answer("a1")), (11.0, answer("a1")), (12.0, answer("a2"))]
    windows = list(streamed(Clock(), arrivals))
    assert [sums(window) for window in windows] == [[(10, 5)], [(10, 5)]]
    assert windows[1].collection.bad_count == 1


def test_ctrl_c_keeps_what_had_arrived() -> None:
    clock = Clock(interrupt_at_s=START_S + 5)
    windows = streamed(clock, [(1.0, answer("a1")), (8.0, answer("a2"))])
    assert sums(next(windows)) == [(10, 5)]
    with pytest.raises(KeyboardInterrupt):
        next(windows)


def test_keys_that_are_asked_for_make_cells() -> None:
    [window] = streamed(Clock(), [(1.0, answer("a1")), (2.0, answer("b1"))], by=("kind",))
    assert sums(window) == [(10, 5), (10, 5)]
