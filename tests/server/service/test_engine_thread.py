import queue
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

from tests.engine.loops import CountingModel, ScriptedDrafter, counting_on, engine_of, request

from outrider.engine.caching.pool import BlockPool
from outrider.engine.models.base import blocks_for
from outrider.engine.sequence import Sequence
from outrider.server.metrics.engine_load import EngineLoad
from outrider.server.metrics.serving_metrics import ServingMetrics
from outrider.server.service.engine_thread import Delivery, EngineThread
from outrider.server.service.outlet import Outlet

PATIENCE_S = 30


class Seen:
    """What a thread hands over, one entry for each time."""

    def __init__(self) -> None:
        self.handed: queue.SimpleQueue[list[Delivery]] = queue.SimpleQueue()
        self.names: set[str] = set()

    def __call__(self, deliveries: list[Delivery]) -> None:
        self.names.add(threading.current_thread().name)
        self.handed.put(deliveries)

    def next(self) -> list[Delivery]:
        return self.handed.get(timeout=PATIENCE_S)


class Gated(CountingModel):
    """Counts, while its gate is open."""

    def __init__(self, *, failing: bool = False) -> None:
        super().__init__()
        self.gate = threading.Event()
        self.gate.set()
        self.failing = failing

    def forward(self, rows):  # type: ignore[no-untyped-def]
        assert self.gate.wait(PATIENCE_S)
        if self.failing:
            raise ZeroDivisionError
        return super().forward(rows)


@contextmanager
def at_work(model: CountingModel, seen: Seen, k: int = 2) -> Iterator[EngineThread]:
    engine, _ = engine_of(model, ScriptedDrafter(counting_on), k, clock=model.clock)
    metrics = ServingMetrics(
        model_name="m", k=k, load=lambda: EngineLoad.of(engine.scheduler), clock=model.clock
    )
    engine.loop = replace(engine.loop, recorder=metrics)
    thread = EngineThread(engine, metrics, hand_over=seen, clock=model.clock)
    thread.start()
    try:
        yield thread
    finally:
        thread.stop()


def submit(thread: EngineThread, *sequences: Sequence) -> Outlet:
    outlet = Outlet(len(sequences))
    thread.submit(sequences, outlet)
    return outlet


def test_what_a_step_tells_is_handed_over_once() -> None:
    seen, model = Seen(), Gated()
    with at_work(model, seen) as thread:
        model.gate.clear()
        outlet = submit(thread, request([0], 4, "a"), request([10], 7, "b"))
        model.gate.set()
        steps = [seen.next() for _ in range(3)]
    told = [[(news.answer, news.token_ids) for _, news in step] for step in steps]
    assert told == [[(0, [1]), (1, [11])], [(0, [2, 3, 4]), (1, [12, 13, 14])], [(1, [15, 16, 17])]]
    assert all(each is outlet for step in steps for each, _ in step)
    assert seen.names == {"engine"}


def test_an_end_comes_with_its_steps() -> None:
    seen = Seen()
    with at_work(Gated(), seen) as thread:
        submit(thread, request([0], 4))
        seen.next()
        [(_, news)] = seen.next()
    assert news.end is not None
    assert news.end.counted is not None
    assert [step.accepted for step in news.end.counted.recorded.steps] == [2]
    assert news.end.counted.completion_tokens == 4


def test_a_request_that_is_cancelled_is_heard_of_no_more() -> None:
    seen, model = Seen(), Gated()
    with at_work(model, seen) as thread:
        model.gate.clear()
        submit(thread, request([0], 900, "gone"))
        thread.cancel(["gone", "unknown"])
        submit(thread, request([5], 1, "stays"))
        model.gate.set()
        told = seen.next()
        while not any(news.end for _, news in told):
            told = seen.next()
        assert [news.token_ids for _, news in told if news.end] == [[6]]
        assert thread._engine.busy is False
        assert thread._metrics._requests == {}


class Watched(Gated):
    """Tells of each pass how many requests it had, and how many blocks were free."""

    pool: BlockPool

    def __init__(self) -> None:
        super().__init__()
        self.requests: list[int] = []
        self.free: list[int] = []
        self.begun = threading.Semaphore(0)

    def forward(self, rows):  # type: ignore[no-untyped-def]
        self.requests.append(len(rows.block_tables))
        self.free.append(self.pool.free_blocks)
        self.begun.release()
        return super().forward(rows)  # type: ignore[no-untyped-call]


def test_one_that_runs_and_is_cancelled_has_left_its_blocks_at_the_next_step() -> None:
    seen, model = Seen(), Watched()
    with at_work(model, seen) as thread:
        model.pool = thread._engine.scheduler.cache.pool
        model.gate.clear()
        submit(thread, request([0] * 200, 700, "gone"), request([5], 700, "stays"))
        assert model.begun.acquire(timeout=PATIENCE_S)
        thread.cancel(["gone"])
        model.gate.set()
        while not any(news.end for _, news in seen.next()):
            pass
        assert thread._engine.busy is False
    assert model.requests[:2] == [2, 1]
    assert set(model.requests[1:]) == {1}
    assert model.free[1] - model.free[0] == blocks_for(200)


def test_what_the_engine_cannot_take_fails_alone() -> None:
    seen = Seen()
    with at_work(Gated(), seen) as thread:
        submit(thread, request([0], 5_000, "long"))
        [(_, news)] = seen.next()
        assert news.end is not None
        assert news.end.failure is not None
        assert "5,000" in news.end.failure
        submit(thread, request([0], 1, "short"))
        [(_, news)] = seen.next()
        assert news.token_ids == [1]


def test_a_failure_of_the_engine_reaches_those_there_are_and_those_to_come() -> None:
    seen, model = Seen(), Gated(failing=True)
    with at_work(model, seen) as thread:
        submit(thread, request([0], 5, "a"))
        [(_, first)] = seen.next()
        submit(thread, request([0], 5, "b"))
        [(_, second)] = seen.next()
        for news in (first, second):
            assert news.end is not None
            assert (
                news.end.failure == thread.failure == "the engine has stopped (ZeroDivisionError)"
            )


def test_stopping_does_not_wait_for_answers() -> None:
    seen = Seen()
    with at_work(Gated(), seen) as thread:
        submit(thread, request([0], 900))
        seen.next()
        thread.stop()
        assert thread._engine.busy
