"""One way to serve several streams at once, and where its time goes."""

import time
from collections.abc import Callable
from collections.abc import Sequence as Sequence_
from dataclasses import dataclass, field
from typing import ParamSpec, TypeVar
from unittest.mock import patch

import numpy as np
import torch
from numpy.typing import NDArray

from outrider.engine import loop
from outrider.engine.adaptive.cost_curve import CostCurve
from outrider.engine.adaptive.verification import AdaptiveVerification
from outrider.engine.caching.cache import BlockCache
from outrider.engine.drafting.base import Drafter
from outrider.engine.drafting.draft import Draft
from outrider.engine.drafting.none import NoDrafter
from outrider.engine.engine import Engine
from outrider.engine.loop import StepLoop
from outrider.engine.models.base import Rows, TargetModel
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

Given = ParamSpec("Given")
Result = TypeVar("Result")


@dataclass
class TimedModel:
    """A target that adds up the seconds of its forward passes, real ones and those of `cost`."""

    target: TargetModel
    cost: CostCurve
    seconds: float = 0.0
    expected_s: float = 0.0

    def __post_init__(self) -> None:
        self.config = self.target.config
        self.num_blocks, self.max_length = self.target.num_blocks, self.target.max_length
        self.logit_tolerance = self.target.logit_tolerance

    def forward(self, rows: Rows) -> torch.Tensor:
        """See `TargetModel.forward`."""
        start = time.perf_counter()
        logits = self.target.forward(rows)
        self.seconds += time.perf_counter() - start
        self.expected_s += self.cost.step_s(len(rows.token_ids))
        return logits


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


@dataclass
class Arm:
    """One way to serve, and what each round gave.

    That is tokens per second by the clock and by the rows, and the shares of the time that were
    verification's, and neither its nor the target's. `adaptive` goes on learning from round to
    round; `outputs` are those of the last.
    """

    model: TimedModel
    make_drafter: MakeDrafter
    k: int
    adaptive: AdaptiveVerification | None = None
    rates: list[float] = field(default_factory=list)
    expected_rates: list[float] = field(default_factory=list)
    verification: list[float] = field(default_factory=list)
    rest: list[float] = field(default_factory=list)
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
        counted, tokens = np.zeros(4), 0
        with patch.object(loop, "take_out_broken_rows", self.verifier.take_out_broken_rows):
            while engine.busy:
                counts = _all_decode(engine.scheduler, streams)
                before = self._seconds()
                updates = engine.step()
                if counts:
                    counted += self._seconds() - before
                    tokens += sum(update.tokens for update in updates)
        step_s, target_s, expected_s, verifying_s = counted
        self.outputs = [sequence.output_token_ids.tolist() for sequence in sequences]
        self.rates.append(tokens / step_s)
        self.expected_rates.append(tokens / expected_s)
        self.verification.append(verifying_s / step_s)
        self.rest.append(1 - (target_s + verifying_s) / step_s)

    def _seconds(self) -> NDArray[np.float64]:
        """The time now; what the target and its rows took so far, and what verification did."""
        model = self.model
        return np.array(
            [time.perf_counter(), model.seconds, model.expected_s, self.verifier.seconds]
        )

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
