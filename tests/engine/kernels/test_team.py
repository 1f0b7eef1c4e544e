import threading
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
import pytest
from numba import njit

from outrider.engine.kernels.team import finish, new_counters, take, wait

Array = np.ndarray[Any, np.dtype[np.int64]]
Run = Callable[..., None]
REGIONS = 40


@pytest.fixture(scope="module")
def run() -> Run:
    """One thread's part of `REGIONS` regions, each of which adds up all of the region before it.

    `taken` [REGIONS, pieces] counts how often a piece was taken, `sums` [REGIONS, pieces] holds
    each piece's result: 1 more than the sum of the last region's, modulo a prime. `delays` [pieces]
    is how long each piece takes, in turns of a loop.
    """

    def region_after_region(
        thread: int, counters: Array, taken: Array, sums: Array, delays: Array, last: int
    ) -> None:
        pieces = taken.shape[1]
        for region in range(last):
            while True:
                piece = take(counters, region, thread, pieces)
                if piece < 0:
                    break
                total = 1
                for other in range(pieces):
                    total += sums[region - 1, other] if region else other
                for turn in range(delays[piece]):
                    total = (total * 31 + turn) % 1_000_003
                taken[region, piece] += 1
                sums[region, piece] = total % 1_000_003
                finish(counters, region)
            wait(counters, region, pieces)

    compiled: Run = njit(nogil=True)(region_after_region)
    nothing = np.zeros((1, 1), np.int64)
    compiled(0, new_counters(1, 1), nothing, nothing.copy(), np.zeros(1, np.int64), 1)
    return compiled


class Team:
    """The arrays of one run, and the result that a single thread gives."""

    def __init__(self, run: Run, *, threads: int, pieces: int, delays: Array | None = None) -> None:
        self.run = run
        self.delays = np.full(pieces, 300, np.int64) if delays is None else delays
        self.counters = new_counters(REGIONS, threads)
        self.taken = np.zeros((REGIONS, pieces), np.int64)
        self.sums = np.zeros((REGIONS, pieces), np.int64)
        self.expected = self.sums.copy()
        alone = (new_counters(REGIONS, 1), self.taken.copy(), self.expected, self.delays)
        run(0, *alone, REGIONS)

    def start(self, numbers: Iterable[int], last: int = REGIONS) -> list[threading.Thread]:
        """Starts the threads with the given numbers, which stop after region `last`."""
        arrays = (self.counters, self.taken, self.sums, self.delays)
        started = [
            threading.Thread(target=self.run, args=(number, *arrays, last), daemon=True)
            for number in numbers
        ]
        for thread in started:
            thread.start()
        return started

    def assert_done(self, threads: list[threading.Thread]) -> None:
        """All threads return, every piece was done exactly once and in order of the regions."""
        for thread in threads:
            thread.join(20)
            assert not thread.is_alive()
        assert (self.taken == 1).all()
        assert np.array_equal(self.sums, self.expected)


@pytest.mark.parametrize("threads", [1, 2, 3, 4, 8])
@pytest.mark.parametrize("pieces", [1, 2, 3, 7, 64])
def test_every_piece_is_done_once_and_no_region_begins_before_the_last_is_done(
    run: Run, threads: int, pieces: int
) -> None:
    for _ in range(10):
        team = Team(run, threads=threads, pieces=pieces)
        team.assert_done(team.start(range(threads)))


def test_pieces_of_very_different_length_are_shared_out(run: Run) -> None:
    delays = np.array([20_000, 0, 0, 0, 5_000, 0, 0, 100], np.int64)
    for _ in range(10):
        team = Team(run, threads=3, pieces=8, delays=delays)
        team.assert_done(team.start(range(3)))


@pytest.mark.parametrize("present", [[0], [1], [2], [0, 2], [1, 2]])
def test_threads_that_never_start_leave_their_pieces_to_the_others(
    run: Run, present: list[int]
) -> None:
    team = Team(run, threads=3, pieces=10)
    team.assert_done(team.start(present))


def test_a_thread_that_starts_when_all_is_done_finds_nothing_and_returns(run: Run) -> None:
    team = Team(run, threads=2, pieces=10)
    team.assert_done(team.start([0]))
    team.assert_done(team.start([1]))


def test_a_thread_that_starts_in_the_middle_joins_in(run: Run) -> None:
    team = Team(run, threads=3, pieces=10)
    first = team.start([0], last=REGIONS // 2)
    first[0].join(20)
    # Thread 0 is gone for good: 1 and 2 run through what it did and do the rest.
    team.assert_done([*first, *team.start([1, 2])])


def test_a_region_without_pieces_holds_nobody(run: Run) -> None:
    team = Team(run, threads=2, pieces=0)
    team.assert_done(team.start(range(2)))


def test_a_thread_takes_from_its_own_range_first_then_from_the_others() -> None:
    counters = new_counters(2, 3)
    assert [take(counters, 1, 1, 8) for _ in range(10)] == [2, 3, 4, 5, 6, 7, 0, 1, -1, -1]
    assert take(counters, 0, 0, 8) == 0


def test_the_ranges_cover_every_piece_once_whatever_their_number() -> None:
    for pieces in range(12):
        for threads in range(1, 6):
            counters = new_counters(1, threads)
            taken = [take(counters, 0, threads - 1, pieces) for _ in range(pieces + 1)]
            assert sorted(taken) == list(range(-1, pieces))


def test_waiting_lasts_until_the_last_piece_is_finished() -> None:
    counters = new_counters(1, 2)
    waiting = threading.Thread(target=wait, args=(counters, 0, 2), daemon=True)
    finish(counters, 0)
    waiting.start()
    waiting.join(0.05)
    assert waiting.is_alive()
    finish(counters, 0)
    waiting.join(20)
    assert not waiting.is_alive()
