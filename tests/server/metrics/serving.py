"""An engine small enough to follow by hand, served: its steps are counted."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace

from tests.engine.loops import Clock, CountingModel, ScriptedDrafter, counting_on, engine_of

from outrider.engine.scheduling.limits import Limits
from outrider.engine.sequence import Sequence
from outrider.records.request import StepRecord
from outrider.server.metrics.ended_request import EndedRequest
from outrider.server.metrics.engine_load import EngineLoad
from outrider.server.metrics.serving_metrics import ServingMetrics

STARTED = 1_700_000_000.0
"""When every server of these tests began to count, in Unix time."""


def metrics_of(k: int, clock: Callable[[], float] | None = None) -> ServingMetrics:
    """Metrics of an engine that is never busy."""
    return ServingMetrics(
        model_name="m", k=k, load=EngineLoad, clock=clock or Clock(), wall_clock=lambda: STARTED
    )


def decoded(
    drafted: int, accepted: int, emitted: int | None = None, trimmed: int = 0
) -> StepRecord:
    """A decode step that took 0.4 s."""
    kept = accepted + 1 if emitted is None else emitted
    return StepRecord(
        drafted, accepted, kept, draft_s=0.1, verify_s=0.2, step_s=0.4, trimmed=trimmed
    )


@dataclass
class Served:
    """An engine whose target takes 2 s for a step, its drafter 1 s, and every draft is right."""

    k: int = 3
    script: Callable[[Sequence], Iterable[int]] = counting_on
    prefix_caching: bool = False
    limits: Limits = field(default_factory=Limits)
    num_blocks: int = 1_000

    def __post_init__(self) -> None:
        self.clock = Clock()
        drafter = ScriptedDrafter(self.script, self.clock, propose_s=1.0)
        self.engine, _ = engine_of(
            CountingModel(self.clock, forward_s=2.0),
            drafter,
            self.k,
            clock=self.clock,
            limits=self.limits,
            num_blocks=self.num_blocks,
            prefix_caching=self.prefix_caching,
        )
        self.metrics = ServingMetrics(
            model_name="m",
            k=self.k,
            load=lambda: EngineLoad.of(self.engine.scheduler),
            clock=self.clock,
            prefix_caching=self.prefix_caching,
            wall_clock=lambda: STARTED,
        )
        self.engine.loop = replace(self.engine.loop, recorder=self.metrics)

    def add(self, sequence: Sequence, *, arrived: float | None = None) -> None:
        """Queue a request now."""
        self.engine.add(sequence)
        self.metrics.added(sequence, arrived=arrived)

    def step(self) -> dict[str, EndedRequest]:
        """Run one step and count it."""
        return self.metrics.stepped(self.engine.step())

    def finish(self) -> dict[str, EndedRequest]:
        """Run until every request has ended."""
        ended: dict[str, EndedRequest] = {}
        while self.engine.busy:
            ended |= self.step()
        return ended

    def value(self, name: str, **labels: str) -> float | None:
        """What the page says of a sample; None where it has none."""
        return self.metrics.registry.get_sample_value(
            name, {"engine": "0", "model_name": "m", **labels}
        )
