"""Fields that response bodies of several engines have in common, taken from JSON of any shape."""

from collections.abc import Iterator, Mapping
from typing import Any

from outrider.records.reading import BadRecord, TagValue
from outrider.records.repetition import is_repetitive
from outrider.records.segment_keys import FIRST_CHUNK
from outrider.records.sources.document import Document, JsonDocument
from outrider.records.validation import LONGEST_DRAFT

ANSWER_OBJECTS = ("chat.completion", "text_completion", "chat.completion.chunk")

PER_CHOICE_STATS = "speculative_decoding_stats"
TENSORRT_LLM_KEYS = frozenset(
    {"total_accepted_draft_tokens", "total_draft_tokens", "avg_decoded_tokens_per_iter"}
)
MLX_KEYS = frozenset({"draft_rounds", "draft_kind", "accepted_draft_tokens"})
SGLANG_CHOICE_KEY = "matched_stop"
"""SGLang's name for what vLLM calls stop_reason; its choices have it with every answer."""

_FEWEST_STEPS_TO_TELL = 8
_NOTHING: Mapping[str, Any] = {}


def json_value(document: Document) -> Any:
    """Return the value of a JSON document, None for any other."""
    return document.value if type(document) is JsonDocument else None


def mapping(value: Any) -> Mapping[str, Any]:
    """Return the value if it is a JSON object, else an empty one."""
    return value if type(value) is dict else _NOTHING


def choices_of(body: Any) -> list[dict[str, Any]]:
    """Return the choices of an OpenAI body; none for anything else."""
    choices = body.get("choices") if type(body) is dict else None
    if type(choices) is not list:
        return []
    return [choice for choice in choices if type(choice) is dict]


def numbered(choices: list[dict[str, Any]]) -> Iterator[tuple[dict[str, Any], int | None]]:
    """Yield each choice with its index, or with None where it is the only one."""
    if len(choices) == 1:
        yield choices[0], None
        return
    for place, choice in enumerate(choices):
        index = choice.get("index")
        yield choice, index if type(index) is int else place


def not_a_body(engine: str, value: Any) -> BadRecord:
    """Say that a document is no response body of the engine."""
    seen = "what is not JSON" if value is None else short(value)
    return BadRecord(f"{seen} is no response body of {engine}")


def answer_fields(
    document: JsonDocument,
    body: Mapping[str, Any],
    choice: Mapping[str, Any],
    index: int | None = None,
) -> dict[str, Any]:
    """Return what an OpenAI body says of an answer besides its speculation, as record fields.

    `index` is the place of the answer where the body has several: its token counts are then sums
    over all of them, and say nothing of one.
    """
    usage = body.get("usage")
    if type(usage) is not dict:
        usage = _NOTHING
    stream = document.stream
    identity = body.get("id")
    fields: dict[str, Any] = {
        "id": identity if type(identity) is str and identity else None,
        "prompt_tokens": usage.get("prompt_tokens"),
        "chunks": None if stream is None else stream.chunks,
        "tags": _tags(document, body, choice),
    }
    if index is None:
        fields["completion_tokens"] = usage.get("completion_tokens")
        details = usage.get("prompt_tokens_details")
        if type(details) is dict:
            fields["cached_tokens"] = details.get("cached_tokens")
    elif fields["id"] is not None:
        fields["cluster"] = fields["id"]
        fields["id"] = f"{identity}#{index}"
    return fields


def _tags(
    document: JsonDocument, body: Mapping[str, Any], choice: Mapping[str, Any]
) -> dict[str, TagValue]:
    tags = dict(document.tags)
    model = body.get("model")
    if type(model) is str:
        tags["model"] = model
    finish = choice.get("finish_reason")
    if type(finish) is str:
        by_string = finish == "stop" and (
            type(choice.get("stop_reason")) is str or type(choice.get(SGLANG_CHOICE_KEY)) is str
        )
        tags["finish_reason"] = "stop string" if by_string else finish
    stream = document.stream
    tags["streamed"] = "no" if stream is None else "yes"
    if stream is not None and stream.first_chunk_tokens is not None:
        tags[FIRST_CHUNK] = "several tokens" if stream.first_chunk_tokens > 1 else "one token"
    return tags


def answer_text(choice: Mapping[str, Any]) -> str:
    """Return the text of a choice, its reasoning where there is no other; "" if it has none."""
    for part in (choice, choice.get("message"), choice.get("delta")):
        if type(part) is dict:
            for name in ("text", "content", "reasoning", "reasoning_content"):
                text = part.get(name)
                if type(text) is str and text:
                    return text
    return ""


def repeats_itself(histogram: Any, k: Any, choice: Mapping[str, Any]) -> bool | None:
    """Whether the text repeats itself; None, the text unread, unless all steps are at both ends."""
    if type(histogram) is not list or not histogram:
        return None
    last = k if type(k) is int else len(histogram) - 1
    if any(histogram[1:last]):
        return None
    ends = (histogram[0], histogram[last] if 0 < last < len(histogram) else 0)
    if not all(type(end) is int for end in ends) or sum(ends) < _FEWEST_STEPS_TO_TELL:
        return None
    text = answer_text(choice)
    return is_repetitive(text) if text else None


def dense_histogram(sparse: Mapping[str, Any], k: Any) -> list[Any] | None:
    """Return H_0 ... H_K from a map of accepted length to steps; None if its keys are no lengths.

    >>> dense_histogram({"0": 39, "1": 1, "3": 3}, 3)
    [39, 1, 0, 3]
    """
    lengths = [int(key) if len(key) <= 3 and key.isdecimal() else -1 for key in sparse]  # noqa: PLR2004
    if any(not 0 <= length <= LONGEST_DRAFT for length in lengths):
        return None
    last = max(lengths, default=0)
    if type(k) is int and last < k <= LONGEST_DRAFT:
        last = k
    dense: list[Any] = [0] * (last + 1)
    for length, steps in zip(lengths, sparse.values(), strict=True):
        dense[length] = steps
    return dense


def mismatch(
    name: str, declared: Any, part: Any, whole: Any, *, plus: int = 0, tolerance: float
) -> str | None:
    """Say how a declared ratio differs from `plus + part / whole`; None if it does not.

    The tolerance is relative. With `whole` at 0 the ratio is `plus`. Where one of the three is not
    given, or the counts are no whole numbers, nothing can be said.
    """
    if declared is None or type(part) is not int or type(whole) is not int:
        return None
    try:
        expected = plus + part / whole if whole else float(plus)
        if abs(declared - expected) <= tolerance * abs(expected):
            return None
    except (TypeError, OverflowError):
        return f"{name} is {short(declared)} beside {short(part)} and {short(whole)}"
    return f"{name} is {declared!r}, the counts {part} and {whole} give {expected!r}"


def short(value: Any) -> str:
    """Return a value as at most 40 characters of Python."""
    text = repr(value) if not isinstance(value, (dict, list)) else type(value).__name__
    return text if len(text) <= 40 else f"{text[:37]}..."  # noqa: PLR2004
