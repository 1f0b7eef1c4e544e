"""Which prompts are trained on, which are held out, and what the target is asked for each."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from outrider.engine.sampling import SamplingParameters
from outrider.errors import InvalidWorkload
from outrider.records.prompt import PromptRecord
from outrider.training.settings import AnswerSettings


@dataclass(frozen=True, slots=True)
class WantedAnswer:
    """An answer to be made; `sampling` asks for the likeliest tokens unless it is held out."""

    answer_id: str
    prompt: PromptRecord
    held_out: bool
    sampling: SamplingParameters


def held_out_prompts(prompts: Sequence[PromptRecord], every: int, seed: int) -> frozenset[str]:
    """The ids of one in `every` prompts of each kind, by a seeded choice, rounded up.

    A kind of one prompt is trained on. Raises InvalidWorkload where none is held out.
    """
    generator = np.random.default_rng(seed)
    by_kind: dict[str, list[str]] = {}
    for prompt in prompts:
        by_kind.setdefault(prompt.kind, []).append(prompt.prompt_id)
    chosen = frozenset(
        ids[place]
        for ids in by_kind.values()
        if len(ids) > 1
        for place in generator.permutation(len(ids))[: -(-len(ids) // every)]
    )
    if not chosen:
        raise InvalidWorkload(
            f"none of {len(prompts)} prompts shares its kind with another",
            "a kind with two or more, so that one can be held out",
            "add prompts, or give them a common kind",
        )
    return chosen


def wanted_answers(
    prompts: Iterable[PromptRecord], held_out: frozenset[str], settings: AnswerSettings
) -> Iterator[WantedAnswer]:
    """Yield what the target is asked, the answers to one prompt after each other."""
    top = settings.top_tokens
    for prompt in prompts:
        held = prompt.prompt_id in held_out
        greedy = SamplingParameters(logprobs=None if held else top)
        yield WantedAnswer(f"{prompt.prompt_id}#0", prompt, held, greedy)
        if held:
            continue
        for sample in range(1, settings.samples + 1):
            drawn = SamplingParameters(settings.temperature, settings.seed + sample, logprobs=top)
            yield WantedAnswer(
                f"{prompt.prompt_id}#{sample}", prompt, held_out=False, sampling=drawn
            )
