"""Runs a comparison of arms: warm-up, then every block, each request kept as soon as it ends."""

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from outrider.bench.answering import Answerer
from outrider.bench.audit import first_divergence
from outrider.bench.schedule import Block, measured_blocks
from outrider.engine.sampling import SamplingParameters
from outrider.records.arm import BASELINE, Arm
from outrider.records.divergence import Divergence
from outrider.records.evidence import RequestKey
from outrider.records.prompt import PromptRecord
from outrider.records.request import Phase, RequestRecord
from outrider.records.run import RunSettings

WARMUP_PROMPTS = 1
"""Prompts that every arm answers first, for page faults, caches and clocks to settle."""


class Keeper(Protocol):
    """Where results go as they come; the evidence file is one."""

    def record(self, request: RequestRecord) -> None:
        """Keeps one finished request."""

    def record_divergences(self, divergences: Iterable[Divergence]) -> None:
        """Keeps what the audit found."""


@dataclass(slots=True)
class ComparisonRun:
    """One session of a comparison; `earlier` holds what earlier sessions measured.

    `advance` is called after every measured request. `time_limit_s` (None: no limit) counts from
    the start; it is looked at between blocks, so that no prompt is left with only some of its arms.
    """

    settings: RunSettings
    prompts: Sequence[PromptRecord]
    answerer: Answerer
    keeper: Keeper
    clock: Callable[[], float]
    advance: Callable[[], None]
    time_limit_s: float | None = None
    earlier: Collection[RequestRecord] = ()
    _outputs: dict[RequestKey, RequestRecord] = field(default_factory=dict, init=False)

    def __post_init__(self) -> None:
        self._outputs = {
            RequestKey(each.arm, each.prompt_id, each.repeat): each for each in self.earlier
        }

    def run(self) -> bool:
        """Measures what is not yet measured; False when the time limit came first."""
        start = self.clock()
        blocks = []
        for block in self._blocks():
            if self._missing(block):
                blocks.append(block)
            elif self.earlier:
                # The earlier session may have ended between its last request and the audit.
                self._audit(block)
        if blocks:
            self._warm_up()
        for block in blocks:
            if self.time_limit_s is not None and self.clock() - start > self.time_limit_s:
                return False
            try:
                for arm in self._missing(block):
                    self._measure(arm, block)
            finally:
                self._audit(block)
        return True

    def _blocks(self) -> Iterable[Block]:
        settings = self.settings
        return measured_blocks(
            settings.arms, self.prompts, repeats=settings.repeats, seed=settings.seed
        )

    def _missing(self, block: Block) -> list[Arm]:
        return [arm for arm in block.arms if _key(arm, block) not in self._outputs]

    def _sampling(self, repeat: int) -> SamplingParameters:
        return SamplingParameters(self.settings.temperature, seed=self.settings.seed + repeat)

    def _warm_up(self) -> None:
        for prompt in self.prompts[:WARMUP_PROMPTS]:
            for arm in self.settings.arms:
                self.keeper.record(
                    self.answerer.answer(
                        arm, prompt, repeat=0, phase=Phase.WARMUP, sampling=self._sampling(0)
                    )
                )

    def _measure(self, arm: Arm, block: Block) -> None:
        request = self.answerer.answer(
            arm,
            block.prompt,
            repeat=block.repeat,
            phase=Phase.MEASURED,
            sampling=self._sampling(block.repeat),
        )
        self.keeper.record(request)
        self._outputs[_key(arm, block)] = request
        self.advance()

    def _audit(self, block: Block) -> None:
        """Compares the block's arms with no speculation, at temperature 0 where that is exact."""
        baseline = self._outputs.get(_key(BASELINE, block))
        if baseline is None or self.settings.temperature > 0:
            return
        found = []
        for arm in block.arms:
            other = self._outputs.get(_key(arm, block))
            if other is not None and arm.speculates:
                found.append(
                    first_divergence(
                        baseline,
                        other,
                        block.prompt,
                        best_two=self.answerer.best_two,
                        tolerance=self.answerer.model.logit_tolerance,
                    )
                )
        divergences = [each for each in found if each is not None]
        if divergences:
            self.keeper.record_divergences(divergences)


def _key(arm: Arm, block: Block) -> RequestKey:
    return RequestKey(arm.name, block.prompt.prompt_id, block.repeat)


def planned_requests(settings: RunSettings, prompts: Sequence[PromptRecord]) -> int:
    """How many requests a complete run measures."""
    return len(settings.arms) * len(prompts) * settings.repeats
