"""Loops small enough to follow by hand, and what drives them."""

from collections.abc import Callable, Iterable
from collections.abc import Sequence as Sequence_
from dataclasses import dataclass, field
from typing import ClassVar
from zlib import crc32

import numpy as np
import torch
from numpy.typing import NDArray
from tests.engine.models.configs import config_of

from outrider.engine.adaptive.verification import AdaptiveVerification
from outrider.engine.caching.cache import BlockCache
from outrider.engine.drafting.base import Drafter
from outrider.engine.drafting.batch_size_ranges import BatchSizeRanges
from outrider.engine.drafting.draft import Draft
from outrider.engine.engine import Engine
from outrider.engine.loop import StepLoop
from outrider.engine.models.base import BLOCK_TOKENS, Rows, TargetModel
from outrider.engine.models.config import DecoderConfig
from outrider.engine.recorder import StepRecorder
from outrider.engine.sampling import Sampling, SamplingParameters
from outrider.engine.scheduling.limits import Limits
from outrider.engine.scheduling.scheduler import Scheduler
from outrider.engine.sequence import Sequence
from outrider.engine.verification.base import Verdict, Verifier
from outrider.engine.verification.standard import StandardVerifier
from outrider.records.request import FinishReason, StepRecord

VOCABULARY = 24


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
    config: DecoderConfig = field(default_factory=lambda: config_of(vocab_size=100))
    num_blocks: int = 1_000
    max_length: int = 1_000
    logit_tolerance: float = 0.0

    def forward(self, rows: Rows) -> torch.Tensor:
        self.clock.now_s += self.forward_s
        following = torch.tensor(list(rows.token_ids))[list(rows.wanted)] + 1
        return torch.nn.functional.one_hot(following % 100, 100).float()


def following(history: Sequence_[int]) -> int:
    """The token after `history`, which depends on all of it."""
    return crc32(bytes(token % 256 for token in history)) % VOCABULARY


class RememberingModel:
    """A target whose next token depends on every token before it, as its cache holds them."""

    logit_tolerance = 0.0

    def __init__(self, num_blocks: int, max_length: int = 1_000) -> None:
        self.config = config_of(vocab_size=VOCABULARY)
        self.num_blocks = num_blocks
        self.max_length = max_length
        self.cache = np.full((num_blocks, BLOCK_TOKENS), -1)
        self.rows = 0

    def forward(self, rows: Rows) -> torch.Tensor:
        self.rows += len(rows.token_ids)
        found = []
        for token, position, index in zip(
            rows.token_ids, rows.positions, rows.sequences, strict=True
        ):
            table = list(rows.block_tables[index])
            self.cache[table[position // BLOCK_TOKENS], position % BLOCK_TOKENS] = token
            history = self.cache[table].ravel()[: position + 1]
            assert (history >= 0).all(), "a token that was never computed"
            found.append(following(history.tolist()))
        chosen = torch.tensor(found)[list(rows.wanted)]
        return torch.nn.functional.one_hot(chosen, VOCABULARY).float()

    @staticmethod
    def answer(prompt: list[int], count: int) -> list[int]:
        """The first `count` tokens after `prompt`, worked out without a cache."""
        history = list(prompt)
        for _ in range(count):
            history.append(following(history))
        return history[len(prompt) :]


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


def request(
    prompt: list[int],
    max_tokens: int,
    name: str = "r",
    *,
    stop_ids: Iterable[int] = (),
    parameters: SamplingParameters = SamplingParameters(),  # noqa: B008  frozen
) -> Sequence:
    """A greedy request unless `parameters` say otherwise, ended by any of `stop_ids`."""
    ends = frozenset(stop_ids)
    return Sequence(
        name,
        prompt,
        max_tokens=max_tokens,
        sampling=Sampling.seeded(parameters, end_token_ids=ends),
        end_token_ids=ends,
    )


def engine_of(
    model: TargetModel,
    drafter: Drafter,
    k: int,
    *,
    clock: Callable[[], float] | None = None,
    limits: Limits | None = None,
    num_blocks: int | None = None,
    prefix_caching: bool = False,
    lookahead_tokens: int = 0,
    k_by_batch_size: BatchSizeRanges | None = None,
    adaptive: AdaptiveVerification | None = None,
    verifier: Verifier | None = None,
) -> tuple[Engine, StepRecorder]:
    """An engine, and the recorder that hears of its steps."""
    recorder = StepRecorder()
    loop = StepLoop(
        model=model,
        drafter=drafter,
        verifier=verifier or StandardVerifier(),
        recorder=recorder,
        k=k,
        clock=clock or Clock(),
        k_by_batch_size=k_by_batch_size,
        adaptive=adaptive,
    )
    cache = BlockCache(
        num_blocks or model.num_blocks,
        prefix_caching=prefix_caching,
        lookahead_tokens=lookahead_tokens,
    )
    return Engine(loop, Scheduler(cache, limits or Limits())), recorder


def finish(engine: Engine) -> dict[str, FinishReason]:
    """Run until every request has ended, and say why each did."""
    reasons = {}
    while engine.busy:
        for update in engine.step():
            if update.finish_reason is not None:
                reasons[update.sequence.request_id] = update.finish_reason
    return reasons


def counted(
    max_tokens: int, k: int, *stop_ids: int
) -> tuple[list[int], FinishReason, tuple[StepRecord, ...]]:
    """What follows the prompt [0] when every draft is right, why it ended, and its steps."""
    engine, recorder = engine_of(CountingModel(), ScriptedDrafter(counting_on), k)
    sequence = request([0], max_tokens, stop_ids=stop_ids)
    engine.add(sequence)
    reason = finish(engine)["r"]
    output: list[int] = sequence.output_token_ids.tolist()
    return output, reason, tuple(recorder.take(sequence).steps)
