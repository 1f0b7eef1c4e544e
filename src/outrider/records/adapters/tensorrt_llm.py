"""TensorRT-LLM: counters on the choice itself."""

from collections.abc import Iterator
from typing import Any

from outrider.records.adapters.base import PlacedReading
from outrider.records.adapters.json_fields import (
    TENSORRT_LLM_KEYS,
    answer_fields,
    choices_of,
    json_value,
    mapping,
    mismatch,
    not_a_body,
    numbered,
    repeats_itself,
)
from outrider.records.reading import AcceptanceRecord, BadRecord, NoMetrics, Reading
from outrider.records.sources.document import Document, JsonDocument

NOTHING_SAID = NoMetrics(
    "TensorRT-LLM's counters are null: the server does not speculate, or its version does not"
    " report it (before #19311)"
)
ALL_ZERO = NoMetrics(
    "counters read 0 with an answer there: unknown on this version (before #17082)"
)

_TOLERANCE = 1e-3
_COUNTERS = (
    "acceptance_histogram",
    "num_spec_steps",
    "total_accepted_draft_tokens",
    "total_draft_tokens",
)


class TensorrtLlmAdapter:
    """One record per choice; two of its field names are also vLLM's, which has them elsewhere."""

    name = "tensorrt-llm"

    def recognises(self, document: Document) -> bool:
        """Whether a choice has a counter that only TensorRT-LLM puts there, if only as null."""
        return any(
            not TENSORRT_LLM_KEYS.isdisjoint(choice) for choice in choices_of(json_value(document))
        )

    def convert(self, document: Document) -> Iterator[PlacedReading]:
        """Read one record per choice."""
        body = json_value(document)
        choices = choices_of(body)
        if not choices or type(document) is not JsonDocument:
            yield document.place, not_a_body("TensorRT-LLM", body)
            return
        for choice, index in numbered(choices):
            yield document.place, _reading(document, body, choice, index)


def _reading(
    document: JsonDocument, body: dict[str, Any], choice: dict[str, Any], index: int | None
) -> Reading:
    histogram, steps, accepted, drafted = map(choice.get, _COUNTERS)
    if histogram is None and steps is None and accepted is None:
        return NOTHING_SAID
    told = any(histogram) if type(histogram) is list else histogram
    if not (told or steps or accepted or drafted):
        tokens = mapping(body.get("usage")).get("completion_tokens")
        if tokens != 0:
            return ALL_ZERO
    wrong = mismatch(
        "acceptance_rate", choice.get("acceptance_rate"), accepted, drafted, tolerance=_TOLERANCE
    )
    if wrong is not None:
        return BadRecord(wrong)
    k = choice.get("num_spec_tokens")
    return AcceptanceRecord(
        engine="tensorrt-llm",
        k=k,
        histogram=histogram,
        steps=steps,
        accepted=accepted,
        drafted=drafted,
        repetitive=repeats_itself(histogram, k, choice),
        **answer_fields(document, body, choice, index),
    )
