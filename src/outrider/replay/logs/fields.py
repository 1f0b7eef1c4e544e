"""The fields of log entries, whatever they are called, checked one by one."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

import numpy as np

from outrider.records.reading import BadRecord, TagValue
from outrider.records.sources.envelope import scalar_tags
from outrider.replay.answer import LoggedAnswer, TokenIds

PROMPT_IDS = ("prompt_token_ids", "prompt_ids", "input_token_ids", "input_ids")
COMPLETION_IDS = (
    "completion_token_ids", "output_token_ids", "response_token_ids", "completion_ids",
    "output_ids",
)  # fmt: skip
PROMPT_TEXT = ("prompt", "input", "question")
COMPLETION_TEXT = ("completion", "response", "output", "answer", "generated_text")
MESSAGES = ("messages", "conversations", "conversation")

MOST_TOKENS = 1 << 21
"""Tokens of one answer and its prompt: beyond it no server goes, and a log must be broken."""
_MOST_LIMIT = 1 << 31
"""Tokens from which on a limit is none."""
_FEWEST_REPEATED = 4
"""Tokens of a prompt that no completion begins with by chance."""

_TIMES = ("timestamp", "created", "created_at", "time", "ts", "started_at", "date")
_LIMITS = ("max_completion_tokens", "max_tokens", "max_new_tokens")
_NO_TAGS = frozenset(
    (*PROMPT_IDS, *COMPLETION_IDS, *PROMPT_TEXT, *COMPLETION_TEXT, *MESSAGES, *_TIMES, *_LIMITS)
) | {
    "engine", "scope", "k", "method", "drafter", "arm",  # of the replay itself
    "n", "stream", "stop", "finish_reason", "tokenizer", "num_speculative_tokens", "object",
    "system_fingerprint", "service_tier",
}  # fmt: skip


class Unusable(ValueError):
    """An entry without a sound answer; the message is the reason to list."""


def first_of(value: Mapping[str, Any], names: Sequence[str]) -> Any:
    """Return the first of these fields that is there, None without any."""
    return next((value[name] for name in names if value.get(name) is not None), None)


def token_ids(ids: object, what: str) -> TokenIds:
    """Return a list of ids as an array; raises Unusable for what is none."""
    if ids is None:
        raise Unusable(f"the {what} is missing")
    if not isinstance(ids, (list, tuple)):
        raise Unusable(f"the {what} is {type(ids).__name__}; expected a list of token ids")
    if not ids:
        return np.zeros(0, np.int32)
    if len(ids) > MOST_TOKENS:
        raise Unusable(f"the {what} has {len(ids):,} tokens; expected at most {MOST_TOKENS:,}")
    try:
        array = np.asarray(ids)
    except (ValueError, OverflowError):
        array = np.zeros(1)
    if array.ndim != 1 or array.dtype.kind != "i":
        raise Unusable(f"the {what} is no list of whole numbers")
    low, high = int(array.min()), int(array.max())
    # NumPy takes true for 1 where other ids stand beside it.
    if low <= 1 and bool in map(type, ids):
        raise Unusable(f"the {what} is no list of whole numbers")
    if low < 0 or high > np.iinfo(np.int32).max:
        wrong = low if low < 0 else high
        raise Unusable(f"the {what} holds the id {wrong}; expected 0 to 2^31 - 1")
    return array.astype(np.int32)


def logged(
    prompt: TokenIds,
    completion: TokenIds,
    told: Mapping[str, Any],
    *,
    tags: Mapping[str, TagValue],
    finish_reason: object = None,
    cluster: str | None = None,
    retokenized: bool = False,
) -> LoggedAnswer:
    """Return the answer; raises Unusable where prompt and completion cannot be what they say.

    `told` holds what else is known of it, as its limit and its time.
    """
    if not len(completion):
        raise Unusable("the completion is empty")
    if len(prompt) + len(completion) > MOST_TOKENS:
        total = len(prompt) + len(completion)
        raise Unusable(f"prompt and completion have {total:,} tokens; at most {MOST_TOKENS:,} fit")
    if _repeats_prompt(prompt, completion):
        raise Unusable(
            "the completion begins with its whole prompt; log only what was generated after it"
        )
    limit = first_of(told, _LIMITS)
    if type(limit) is not int or not len(completion) <= limit < _MOST_LIMIT:
        limit = len(completion) if finish_reason == "length" else None
    return LoggedAnswer(
        prompt=prompt,
        completion=completion,
        max_tokens=limit,
        cluster=cluster,
        timestamp_s=_time_of(first_of(told, _TIMES)),
        retokenized=retokenized,
        tags={**tags_of(told), **{k: v for k, v in tags.items() if k not in _NO_TAGS}},
    )


def tags_of(value: Mapping[str, Any]) -> dict[str, TagValue]:
    """Return what segments can be made by, the texts and ids themselves aside."""
    return scalar_tags({name: each for name, each in value.items() if name not in _NO_TAGS})


def text_of(content: object) -> str:
    """Return the text of a message's content, which may come in parts."""
    if isinstance(content, str):
        return content
    parts = content if isinstance(content, list) else ()
    return "".join(
        each["text"] for each in parts if isinstance(each, dict) and type(each.get("text")) is str
    )


def bad(error: Exception) -> BadRecord:
    """Return the record of an answer that cannot be used."""
    return BadRecord(str(error))


def _repeats_prompt(prompt: TokenIds, completion: TokenIds) -> bool:
    size = len(prompt)
    if not _FEWEST_REPEATED <= size <= len(completion):
        return False
    return bool(np.array_equal(prompt, completion[:size])) and len(np.unique(prompt)) > 1


def _time_of(value: object) -> float | None:
    if isinstance(value, bool):
        return None
    try:
        if isinstance(value, (int, float)):
            return float(value)
        if isinstance(value, datetime):
            return value.timestamp()
        return datetime.fromisoformat(str(value)).timestamp()
    except (ValueError, OverflowError):
        return None
