"""One way to serve several streams at once, and where its time goes."""

import time
from collections.abc import Callable
from collections.abc import Sequence as Sequence_
from dataclasses import dataclass, field
from typing import ParamSpec, TypeVar
from unittest.mock import patch

import torch

from outrider.engine import loop
from outrider.engine.adaptive.verification import AdaptiveVerification
from outrider.engine.caching.cache import BlockCache
from outrider.engine.drafting.base import Drafter
from outrider.engine.drafting.draft import Draft
from outrider.engine.drafting.none import NoDrafter
from outrider.engine.engine import Engine
from outrider.engine.loop import StepLoop
from outrider.engine.recorder import StepRecorder
from outrider.engine.sampling import Sampling, SamplingParameters
from outrider.engine.scheduling.limits import Limits
from outrider.engine.scheduling.scheduler import Scheduler
from outrider.engine.sequence import Sequence
from outrider.engine.verification.base import Verdict
from outrider.engine.verification.broken_logits import BrokenRow, take_out_broken_rows
from outrider.engine.verification.standard import StandardVerifier
from outrider.records.prompt import PromptRecord

from .drafters import MakeDrafter
from .passes import Pass, TimedModel, TypicalPasses

TARGET, DRAFT = "target", "draft"

Given = ParamSpec("Given")
Result = TypeVar("Result")


@dataclass
class TimedVerifier:
    """Lossless verification that adds up its seconds, whatever reads all logits included."""

    rule: StandardVerifier = field(default_factory=StandardVerifier)
    seconds: float = 0.0
    name: str = StandardVerifier.name
    lossless: bool = StandardVerifier.lossless

    def verify(self, logits: torch.Tensor, draft: Draft, sampling: Sequence_[Sampling]) -> Verdict:
        """See `Verifier.verify`."""
        return self._timed(self.rule.verify, logits, draft, sampling)

    def take_out_broken_rows(self, logits: torch.Tensor, draft: Draft) -> list[BrokenRow]:
        """See `broken_logits`; reads all logits too, so it counts as verification."""
        return self._timed(take_out_broken_rows, logits, draft)

    def _timed(
        self, run: Callable[Given, Result], *args: Given.args, **kwargs: Given.kwargs
    ) -> Result:
        start = time.perf_counter()
        result = run(*args, **kwargs)
        self.seconds += time.perf_counter() - start
        return result


@dataclass(frozen=True, slots=True)
class Round:
    """What the steps that count gave in one round."""

    tokens: int
    step_s: float
    verifying_s: float
    passes: tuple[Pass, ...]

    @property
    def rate(self) -> float:
        """Tokens per second, by the clock."""
        return self.tokens / self.step_s

    def typical_rate(self, typical: TypicalPasses) -> float:
        """Tokens per second if each pass had been typical and the rest had kept its share."""
        passes_s = sum(each.seconds for each in self.passes)
        return self.tokens / (typical.total_s(self.passes) * self.step_s / passes_s)

    @property
    def verifying(self) -> float:
        """The share of the time that verification took, whatever reads all logits included."""
        return self.verifying_s / self.step_s

    @property
    def rest(self) -> float:
        """The share that was neither verification's nor the target's."""
        target_s = sum(each.seconds for each in self.passes if each.model == TARGET)
        return 1 - self.verifying - target_s / self.step_s


@dataclass
class Arm:
    """One way to serve, and what each round gave, the first of which is warm-up.

    `adaptive` goes on learning from round to round. `outputs` are those of the last.
    """

    model: TimedModel
    make_drafter: MakeDrafter
    k: int
    adaptive: AdaptiveVerification | None = None
    rounds: list[Round] = field(default_factory=list)
    verifier: TimedVerifier = field(default_factory=TimedVerifier)
    outputs: list[list[int]] = field(default_factory=list)

    def measure(self, prompts: Sequence_[PromptRecord], streams: int) -> None:
        """Serve `prompts`, `streams` at a time: as one ends, the next begins.

        What counts are the steps of that many streams in which no prompt is read.
        """
        engine = self._engine(streams)
        sequences = [
            Sequence(
                str(place),
                prompt.token_ids,
                max_tokens=prompt.max_tokens,
                sampling=Sampling.seeded(SamplingParameters()),
            )
            for place, prompt in enumerate(prompts)
        ]
        for sequence in sequences:
            engine.add(sequence)
        seen, passes = self.model.seen, list[Pass]()
        tokens, step_s, verifying_s = 0, 0.0, 0.0
        with patch.object(loop, "take_out_broken_rows", self.verifier.take_out_broken_rows):
            while engine.busy:
                counts = _all_decode(engine.scheduler, streams)
                seen.clear()
                self.verifier.seconds = 0.0
                start = time.perf_counter()
                updates = engine.step()
                if counts:
                    step_s += time.perf_counter() - start
                    verifying_s += self.verifier.seconds
                    passes += seen
                    tokens += sum(update.tokens for update in updates)
        self.outputs = [sequence.output_token_ids.tolist() for sequence in sequences]
        self.rounds.append(Round(tokens, step_s, verifying_s, tuple(passes)))

    def _drafter(self) -> Drafter:
        if self.k == 0:
            return NoDrafter()
        return self.make_drafter(self.k, judge=self.adaptive)

    def _engine(self, streams: int) -> Engine:
        steps = StepLoop(
            model=self.model,
            drafter=self._drafter(),
            verifier=self.verifier,
            recorder=StepRecorder(),
            k=self.k,
            clock=time.perf_counter,
            adaptive=self.adaptive,
        )
        return Engine(steps, Scheduler(BlockCache(self.model.num_blocks), Limits(streams)))


def _all_decode(scheduler: Scheduler, streams: int) -> bool:
    """Whether the next step is one of `streams` requests that have read their prompts."""
    return len(scheduler.running) == streams and all(
        len(sequence) > sequence.prompt_tokens for sequence in scheduler.running
    )
