"""Decoding end to end: the embedded engine beside transformers' `generate`, on the same prompts."""

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch

from outrider.bench.answering import Answerer
from outrider.bench.target import stop_ids
from outrider.engine.models.backends.torch import TORCH_DTYPES
from outrider.engine.models.packing import PACKINGS
from outrider.engine.models.registry import load_model
from outrider.engine.models.settings import ModelSettings
from outrider.engine.sampling import SamplingParameters
from outrider.engine.tokenizer import Tokenizer
from outrider.records.arm import BASELINE, Arm
from outrider.records.prompt import PromptRecord
from outrider.records.request import Phase

from .rounds import Spread, use_torch_threads


def ngram(k: int) -> Arm:
    """As transformers looks prompts up: n-grams from the longest down to 1, the first match."""
    return Arm(
        name=f"ngram K={k}",
        method="ngram",
        num_speculative_tokens=k,
        prompt_lookup_min=1,
        prompt_lookup_max=5,
        ngram_tie="earliest",
    )


ARMS = (BASELINE, ngram(4), ngram(8))
WARMUP_TOKENS = 4
ENGINE, TRANSFORMERS = "outrider", "transformers"


@dataclass(frozen=True, slots=True)
class Answer:
    """One answer's tokens, and the seconds of all of them but the first."""

    token_ids: tuple[int, ...]
    later_s: float

    @property
    def later_tokens(self) -> int:
        """The tokens that decoding made; the first comes from the prompt's own pass."""
        return len(self.token_ids) - 1


@dataclass(frozen=True, slots=True)
class DecodingSpeed:
    """One system, type and arm over all prompts.

    `speed_up` is against transformers without lookup in the same type, prompt by prompt; `alike`
    counts the prompts with the same tokens as that.
    """

    system: str
    dtype: str
    arm: str
    answers: int
    tokens: int
    tokens_per_s: float
    speed_up: Spread
    alike: int


Way = tuple[str, str, str]
"""System, type and arm."""


class Systems:
    """Both systems with the weights in every type that they have."""

    def __init__(
        self,
        path: Path,
        tokenizer: Tokenizer,
        prompts: Sequence[PromptRecord],
        *,
        threads: int,
    ) -> None:
        self._threads = threads
        self._generators = pretrained(path)
        longest = max(len(prompt.token_ids) + prompt.max_tokens for prompt in prompts)
        settings = ModelSettings(backend="fused", threads=threads).with_room(longest)
        models = {dtype: load_model(path, replace(settings, dtype=dtype)) for dtype in PACKINGS}
        self._stop_ids = frozenset().union(
            *(stop_ids(model, tokenizer) for model in models.values())
        )
        self._answerers = {
            dtype: Answerer(model, ARMS, stop_ids=self._stop_ids, clock=time.perf_counter)
            for dtype, model in models.items()
        }

    def answer(self, way: Way, prompt: PromptRecord) -> Answer:
        """One greedy answer; torch has all threads for `generate`, 1 beside the engine's own."""
        system, dtype, name = way
        arm = next(arm for arm in ARMS if arm.name == name)
        use_torch_threads(1 if system == ENGINE else self._threads)
        if system == ENGINE:
            return self._engine_answer(dtype, arm, prompt)
        token_ids, all_s = self._generate(dtype, arm, prompt, prompt.max_tokens)
        _, first_s = self._generate(dtype, arm, prompt, 1)
        return Answer(token_ids, all_s - first_s)

    def _engine_answer(self, dtype: str, arm: Arm, prompt: PromptRecord) -> Answer:
        start = time.perf_counter()
        record = self._answerers[dtype].answer(
            arm, prompt, repeat=0, phase=Phase.MEASURED, sampling=SamplingParameters()
        )
        return Answer(record.output_token_ids, time.perf_counter() - start - record.prefill_s)

    def _generate(
        self, dtype: str, arm: Arm, prompt: PromptRecord, max_tokens: int
    ) -> tuple[tuple[int, ...], float]:
        lookup = (
            {
                "prompt_lookup_num_tokens": arm.num_speculative_tokens,
                "max_matching_ngram_size": arm.prompt_lookup_max,
            }
            if arm.speculates
            else {}
        )
        prompt_ids = torch.tensor([prompt.token_ids])
        start = time.perf_counter()
        output = self._generators[dtype].generate(
            prompt_ids,
            attention_mask=torch.ones_like(prompt_ids),
            do_sample=False,
            max_new_tokens=max_tokens,
            eos_token_id=sorted(self._stop_ids) or None,
            pad_token_id=min(self._stop_ids, default=0),
            **lookup,
        )
        took_s = time.perf_counter() - start
        return tuple(output[0, prompt_ids.shape[1] :].tolist()), took_s


def pretrained(path: Path) -> dict[str, Any]:
    """transformers' model in every type; its positions are float32 in all of them."""
    from transformers import AutoModelForCausalLM, logging  # noqa: PLC0415  takes seconds

    logging.set_verbosity_error()
    folder, extra = (path, {}) if path.is_dir() else (path.parent, {"gguf_file": path.name})
    original = AutoModelForCausalLM.from_pretrained(
        folder, local_files_only=True, dtype=torch.float32, **extra
    )
    models = {}
    for name, dtype in TORCH_DTYPES.items():
        models[name] = AutoModelForCausalLM.from_config(original.config, dtype=dtype).eval()
        models[name].load_state_dict(original.state_dict())
    return models


def measure_decoding(
    systems: Systems, prompts: Sequence[PromptRecord], *, budget_s: float
) -> tuple[DecodingSpeed, ...]:
    """Answers each prompt in every way before the next, in an order drawn anew.

    No prompt begins once `budget_s` is spent, but for the first.
    """
    ways: list[Way] = [
        (system, dtype, arm.name)
        for system, dtypes in ((TRANSFORMERS, TORCH_DTYPES), (ENGINE, PACKINGS))
        for dtype in dtypes
        for arm in ARMS
    ]
    for way in ways:
        systems.answer(way, replace(prompts[0], max_tokens=WARMUP_TOKENS))
    rng = np.random.default_rng(0)
    answers: dict[Way, list[Answer]] = {way: [] for way in ways}
    start = time.perf_counter()
    for done, prompt in enumerate(prompts):
        if done and time.perf_counter() - start > budget_s:
            break
        for i in rng.permutation(len(ways)):
            answers[ways[i]].append(systems.answer(ways[i], prompt))
    return tuple(_speed(way, answers) for way in ways)


def _speed(way: Way, answers: Mapping[Way, Sequence[Answer]]) -> DecodingSpeed:
    system, dtype, arm = way
    against = dtype if dtype in TORCH_DTYPES else "bfloat16"
    own, reference = answers[way], answers[TRANSFORMERS, against, BASELINE.name]
    pairs = [pair for pair in zip(own, reference, strict=True) if pair[0].later_tokens]
    tokens = sum(answer.later_tokens for answer in own)
    return DecodingSpeed(
        system=system,
        dtype=dtype,
        arm=arm,
        answers=len(own),
        tokens=tokens,
        tokens_per_s=tokens / sum(answer.later_s for answer in own),
        speed_up=Spread.of([_rate(a) / _rate(b) for a, b in pairs if b.later_tokens]),
        alike=sum(a.token_ids == b.token_ids for a, b in zip(own, reference, strict=True)),
    )


def _rate(answer: Answer) -> float:
    return answer.later_tokens / answer.later_s
