"""llama-server: `timings`, with the draft counts of an answer but not its steps."""

from collections.abc import Iterator, Mapping
from typing import Any

from outrider.records.adapters.base import PlacedReading
from outrider.records.adapters.json_fields import (
    MLX_KEYS,
    answer_fields,
    choices_of,
    json_value,
    mapping,
    not_a_body,
    short,
)
from outrider.records.reading import AcceptanceRecord, BadRecord, NoMetrics, Reading
from outrider.records.sources.document import Document, JsonDocument

NOTHING_DRAFTED = NoMetrics(
    "nothing was drafted, or no draft model (llama-server omits draft_n then)"
)

_FINISH_REASONS = {"eos": "stop", "limit": "length", "word": "stop string"}


class LlamaServerAdapter:
    """One record per body, native or OpenAI; steps are tokens less accepted drafts, an estimate."""

    name = "llama-server"

    def recognises(self, document: Document) -> bool:
        """Whether there are timings with a count of predicted tokens, and nothing of mlx."""
        timings = mapping(mapping(json_value(document)).get("timings"))
        return "predicted_n" in timings and MLX_KEYS.isdisjoint(timings)

    def convert(self, document: Document) -> Iterator[PlacedReading]:
        """Read the one record of a body."""
        body = json_value(document)
        timings = mapping(body).get("timings")
        if type(timings) is not dict or type(document) is not JsonDocument:
            yield document.place, not_a_body("llama-server", body)
        else:
            yield document.place, _reading(document, body, timings)


def _reading(document: JsonDocument, body: dict[str, Any], timings: Mapping[str, Any]) -> Reading:
    drafted, accepted = timings.get("draft_n"), timings.get("draft_n_accepted")
    if not drafted:
        return NOTHING_DRAFTED
    tokens = timings.get("predicted_n")
    if type(tokens) is not int or type(accepted) is not int or accepted > tokens:
        return BadRecord(f"{short(accepted)} accepted drafts in {short(tokens)} predicted tokens")
    return AcceptanceRecord(
        engine="llama.cpp",
        steps=tokens - accepted,
        steps_basis="estimated",
        accepted=accepted,
        drafted=drafted,
        **timed_fields(document, body, timings),
    )


def timed_fields(
    document: JsonDocument, body: Mapping[str, Any], timings: Mapping[str, Any]
) -> dict[str, Any]:
    """Return what a body with timings says of an answer besides its speculation."""
    choices = choices_of(body)
    fields = answer_fields(document, body, choices[0] if choices else {})
    stop = body.get("stop_type")
    if type(stop) is str and stop in _FINISH_REASONS:
        fields["tags"]["finish_reason"] = _FINISH_REASONS[stop]
    fields["completion_tokens"] = timings.get("predicted_n")
    cached, processed = timings.get("cache_n"), timings.get("prompt_n")
    if fields.get("cached_tokens") is None:
        fields["cached_tokens"] = cached
    if fields["prompt_tokens"] is None:
        # prompt_n leaves out what came from the cache.
        if type(cached) is int and type(processed) is int:
            fields["prompt_tokens"] = cached + processed
        else:
            fields["prompt_tokens"] = body.get("tokens_evaluated")
    return fields
