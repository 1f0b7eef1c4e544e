"""Loops small enough to follow by hand, and what drives them."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np
import torch
from numpy.typing import NDArray

from outrider.engine.drafting.base import Drafter
from outrider.engine.drafting.draft import Draft
from outrider.engine.loop import StepLoop
from outrider.engine.models.base import Rows, TargetModel
from outrider.engine.models.config import DecoderConfig
from outrider.engine.recorder import StepRecorder
from outrider.engine.sampling import Sampling, SamplingParameters
from outrider.engine.sequence import Sequence
from outrider.engine.verification.base import Verdict
from outrider.engine.verification.standard import StandardVerifier
from outrider.records.request import FinishReason, StepRecord

SLOTS = 16
VOCABULARY = 24
Outputs = dict[str, list[int]]
Steps = dict[str, tuple[StepRecord, ...]]


@dataclass
class Clock:
    """A clock that only moves when told to."""

    now_s: float = 0.0

    def __call__(self) -> float:
        return self.now_s


@dataclass
class CountingModel:
    """A target that counts: after token t comes t + 1, whatever came before."""

    clock: Clock = field(default_factory=Clock)
    forward_s: float = 0.0
    config: DecoderConfig = field(init=False)  # nobody asks it
    capacity: int = 1_000
    dtype: torch.dtype = torch.float32
    logit_tolerance: float = 0.0

    def forward(self, rows: Rows) -> torch.Tensor:
        self.clock.now_s += self.forward_s
        following = torch.tensor(list(rows.token_ids))[list(rows.wanted)] + 1
        return torch.nn.functional.one_hot(following % 100, 100).float()


@dataclass
class ScriptedDrafter:
    """Drafts what `script` says about a sequence, as far as the limit allows."""

    name: ClassVar[str] = "scripted"

    script: Callable[[Sequence], Iterable[int]]
    clock: Clock = field(default_factory=Clock)
    propose_s: float = 0.0
    observe_s: float = 0.0
    verdicts: list[Verdict] = field(default_factory=list)

    def propose(self, batch: list[Sequence], limit: NDArray[np.int64]) -> Draft:
        self.clock.now_s += self.propose_s
        draft = Draft.empty(len(batch), int(limit.max()))
        for row, (sequence, most) in enumerate(zip(batch, limit, strict=True)):
            tokens = list(self.script(sequence))[:most]
            draft.tokens[row, : len(tokens)] = tokens
            draft.lengths[row] = len(tokens)
        return draft

    def observe(self, batch: list[Sequence], verdict: Verdict) -> None:
        self.clock.now_s += self.observe_s
        self.verdicts.append(verdict)


def counting_on(sequence: Sequence) -> Iterable[int]:
    """The oracle of a `CountingModel`."""
    last = int(sequence.token_ids[-1])
    return range(last + 1, last + 20)


def request(prompt: list[int], max_tokens: int, name: str = "r", slot: int = 0) -> Sequence:
    sampling = Sampling.seeded(SamplingParameters())
    return Sequence(name, prompt, max_tokens=max_tokens, sampling=sampling, slot=slot)


def loop_of(
    model: TargetModel,
    drafter: Drafter,
    k: int,
    *,
    stop_ids: Iterable[int] = (),
    clock: Callable[[], float] | None = None,
) -> tuple[StepLoop, StepRecorder]:
    recorder = StepRecorder()
    loop = StepLoop(
        model=model,
        drafter=drafter,
        verifier=StandardVerifier(),
        recorder=recorder,
        k=k,
        stop_ids=frozenset(stop_ids),
        clock=clock or Clock(),
    )
    return loop, recorder


def counted(
    max_tokens: int, k: int, *stop_ids: int
) -> tuple[list[int], FinishReason | None, tuple[StepRecord, ...]]:
    """What follows the prompt [0] when every draft is right, why it ended, and its steps."""
    loop, recorder = loop_of(CountingModel(), ScriptedDrafter(counting_on), k, stop_ids=stop_ids)
    sequence = request([0], max_tokens)
    loop.prefill(sequence)
    while loop.finished(sequence) is None:
        loop.step([sequence])
    output: list[int] = sequence.output_token_ids.tolist()
    return output, loop.finished(sequence), recorder.take(sequence)
