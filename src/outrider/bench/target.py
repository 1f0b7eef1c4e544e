"""The model under test, ready to answer."""

import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import psutil

from outrider.bench.workload import Prompt
from outrider.engine.models.base import TargetModel
from outrider.engine.models.registry import load_model, resolve
from outrider.engine.models.settings import ModelSettings
from outrider.engine.models.source import open_weights
from outrider.engine.models.store import ModelFiles
from outrider.engine.tokenizer import Tokenizer
from outrider.errors import CorruptFile, InvalidWorkload
from outrider.records.environment import ModelIdentity
from outrider.records.prompt import PromptRecord


@dataclass(frozen=True, slots=True)
class Target:
    """Weights, their identity, and the tokens that end an answer."""

    model: TargetModel
    identity: ModelIdentity
    backend: str
    threads: int
    stop_ids: frozenset[int]


def usable_cores() -> int:
    """Physical cores that this process may run on; at least 1."""
    allowed = (
        len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    )
    return max(1, min(allowed, psutil.cpu_count(logical=False) or allowed))


def load_target(
    files: ModelFiles,
    tokenizer: Tokenizer,
    settings: ModelSettings,
    prompts: Sequence[PromptRecord],
) -> Target:
    """Loads the weights with room for the longest of `prompts` and its answer.

    Raises InvalidWorkload for prompts that the model cannot take.
    """
    config = open_weights(files.path).config
    longest = max(prompts, key=lambda each: len(each.token_ids) + each.max_tokens)
    needed = len(longest.token_ids) + longest.max_tokens
    if needed > config.max_positions:
        raise InvalidWorkload(
            f"prompt {longest.prompt_id!r} and its answer take {needed} tokens",
            f"at most the model's {config.max_positions}",
            "shorten it or lower its max_tokens",
        )
    largest = max(max(prompt.token_ids, default=0) for prompt in prompts)
    if largest >= config.vocab_size:
        raise CorruptFile(
            f"the tokenizer of {files.path} gives token {largest}",
            f"tokens below the {config.vocab_size} that the weights know",
            "take weights and tokenizer from the same model",
        )
    backend, dtype = resolve(settings)
    model = load_model(files.path, settings.with_room(needed))
    return Target(
        model=model,
        identity=ModelIdentity(
            name=files.name,
            source=files.source,
            sha256=files.sha256,
            parameters=model.config.parameters,
            dtype=dtype,
            hub_id=files.hub_id,
        ),
        backend=backend,
        threads=settings.threads,
        stop_ids=stop_ids(model, tokenizer),
    )


def stop_ids(model: TargetModel, tokenizer: Tokenizer) -> frozenset[int]:
    """What the weights' config and the tokenizer call the end of an answer; may be empty."""
    named = {*model.config.eos_token_ids, tokenizer.eos_token_id}
    return frozenset(token for token in named if token is not None)


def tokenized(
    prompts: Iterable[Prompt], tokenizer: Tokenizer, max_tokens: int | None
) -> tuple[PromptRecord, ...]:
    """The prompts as the target sees them; `max_tokens` caps each prompt's own limit.

    Raises InvalidWorkload for a chat that the model's template refuses.
    """
    return tuple(
        PromptRecord(
            prompt_id=prompt.prompt_id,
            kind=prompt.kind,
            token_ids=_token_ids(prompt, tokenizer),
            max_tokens=min(prompt.max_tokens, max_tokens or prompt.max_tokens),
            messages_json=prompt.messages_json,
        )
        for prompt in prompts
    )


def _token_ids(prompt: Prompt, tokenizer: Tokenizer) -> tuple[int, ...]:
    try:
        token_ids = tuple(tokenizer.encode_chat(prompt.chat))
    except InvalidWorkload as error:
        raise InvalidWorkload(
            f"in prompt {prompt.prompt_id!r} {error.seen}", error.expected, error.remedy
        ) from error
    if not token_ids:
        raise InvalidWorkload(
            f"prompt {prompt.prompt_id!r} has no token", "at least one", "lengthen the prompt"
        )
    return token_ids
