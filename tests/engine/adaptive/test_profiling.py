"""Step costs of a target that takes as long as it is told."""

from dataclasses import dataclass, field

import torch
from tests.engine.loops import CountingModel

from outrider.engine.adaptive.profiling import profile_steps
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


def costs(model: Timed, most_rows: int) -> dict[int, float]:
    curve = profile_steps(model, most_rows=most_rows, clock=model.clock)
    return dict(zip(curve.rows.tolist(), curve.seconds.tolist(), strict=True))


def test_every_size_costs_what_the_clock_says_once_it_is_compiled() -> None:
    assert costs(Timed(), 10) == {rows: 1 + rows / 4 for rows in range(1, 11)}


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
    assert curve.seconds.tolist() == [7, 7, 7]


def test_no_step_is_larger_than_the_target_takes() -> None:
    assert costs(Timed(max_length=5), 256).keys() == {1, 2, 3, 4, 5}


def test_two_sizes_are_timed_where_one_would_be_enough() -> None:
    assert costs(Timed(), 1).keys() == {1, 2}
