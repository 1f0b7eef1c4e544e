"""Step costs of a target that takes as long as it is told."""

from dataclasses import dataclass, field

import numpy as np
import pytest
import torch
from tests.engine.loops import CountingModel

from outrider.engine.adaptive.profiling import profile_steps, typical
from outrider.engine.models.base import Rows


@dataclass
class Timed(CountingModel):
    """Takes a second and a quarter more for each row, and the first time a minute to compile."""

    compiled: set[int] = field(default_factory=set)

    def forward(self, rows: Rows) -> torch.Tensor:
        assert max(rows.positions) < self.max_length
        count = len(rows.token_ids)
        self.clock.now_s += 1 + count / 4 + (0 if count in self.compiled else 60)
        self.compiled.add(count)
        return super().forward(rows)


def costs(model: Timed, most_rows: int) -> list[float]:
    curve = profile_steps(model, most_rows=most_rows, clock=model.clock)
    taken: list[float] = curve.table[1:].tolist()
    return taken


def test_every_size_costs_what_the_clock_says_once_it_is_compiled() -> None:
    assert costs(Timed(), 10) == [1 + rows / 4 for rows in range(1, 11)]


def test_rounds_in_which_the_machine_was_slow_do_not_count_for_more() -> None:
    exact = np.array([1.0, 1.5, 2.0])
    speeds = np.array([[1.0], [1.7], [1.0], [1.3], [1.0]])
    taken = exact * speeds
    taken[3, 0] *= 9  # one step alone
    assert typical(taken) == pytest.approx(exact)


class Unread(torch.Tensor):
    """Logits that a device is still computing: reading one waits for it."""

    model: "OnDevice"

    def __float__(self) -> float:
        self.model.clock.now_s += 7
        return 0.0


class OnDevice(CountingModel):
    """Returns from `forward` at once."""

    def forward(self, rows: Rows) -> torch.Tensor:
        Unread.model = self
        return super().forward(rows).as_subclass(Unread)


def test_a_step_lasts_until_its_logits_can_be_read() -> None:
    model = OnDevice()
    curve = profile_steps(model, most_rows=3, clock=model.clock)
    assert curve.table[1:].tolist() == [7, 7, 7]


def test_no_step_is_larger_than_the_target_takes() -> None:
    assert len(costs(Timed(max_length=5), 256)) == 5


def test_two_sizes_are_timed_where_one_would_be_enough() -> None:
    assert len(costs(Timed(), 1)) == 2


@dataclass
class Reading(CountingModel):
    """Takes a second, and a millisecond for each token of each request that it attends to."""

    def forward(self, rows: Rows) -> torch.Tensor:
        ends = dict(zip(rows.sequences, rows.positions, strict=True))
        self.clock.now_s += 1 + (sum(ends.values()) + len(ends)) / 1_000
        used = [block for table in rows.block_tables for block in table]
        assert len(set(used)) == len(used) <= self.num_blocks
        return super().forward(rows)


def test_what_a_cached_token_costs_is_timed_with_many_requests() -> None:
    model = Reading(max_length=400, num_blocks=100)
    curve = profile_steps(model, most_rows=20, clock=model.clock)
    assert curve.cached_token_s == pytest.approx(0.001, rel=0.01)
    assert curve.context_s(16 * 300) == pytest.approx(0.001 * (16 * 300 - 256), rel=0.01)


@pytest.mark.parametrize(("num_blocks", "max_length"), [(9, 400), (100, 200)])
def test_where_many_requests_find_no_room_it_counts_for_nothing(
    num_blocks: int, max_length: int
) -> None:
    model = Reading(num_blocks=num_blocks, max_length=max_length)
    assert profile_steps(model, most_rows=20, clock=model.clock).cached_token_s == 0
