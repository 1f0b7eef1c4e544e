"""vLLM before 0.32 with per-request statistics: `speculative_decoding_stats` on each choice."""

from collections.abc import Iterator, Mapping
from typing import Any

from outrider.records.adapters.base import PlacedReading
from outrider.records.adapters.json_fields import (
    PER_CHOICE_STATS,
    choices_of,
    dense_histogram,
    json_value,
    mapping,
    not_a_body,
    numbered,
    short,
)
from outrider.records.adapters.vllm import record_of
from outrider.records.reading import BadRecord, NoMetrics, Reading
from outrider.records.sources.document import Document, JsonDocument

NO_STATS = NoMetrics(
    "the answer did not speculate, or --per-request-spec-decode-stats is off: its statistics are"
    " null"
)

_OLDER_NAMES = {
    "acceptance_histogram": ("accepted_length_counts", "num_accepted_tokens_histogram"),
    "num_spec_steps": ("num_draft_steps", "num_drafts"),
    "num_accepted_draft_tokens": ("num_accepted_tokens",),
    "num_draft_tokens": ("num_drafted_tokens",),
    "mean_acceptance_length": ("mean_accepted_length_per_step",),
}


class VllmChoiceAdapter:
    """One record per choice; the histogram is a map from accepted length to steps."""

    name = "vllm-choice"

    def recognises(self, document: Document) -> bool:
        """Whether a choice, or the body itself, has the statistics, if only as null."""
        body = json_value(document)
        if type(body) is not dict or type(body.get("choices")) is not list:
            return False
        return PER_CHOICE_STATS in body or any(
            PER_CHOICE_STATS in choice for choice in choices_of(body)
        )

    def convert(self, document: Document) -> Iterator[PlacedReading]:
        """Read one record per choice."""
        body = json_value(document)
        if type(body) is not dict or type(document) is not JsonDocument:
            yield document.place, not_a_body("vLLM", body)
            return
        choices = choices_of(body)
        if PER_CHOICE_STATS in body:
            choices = [{**mapping(choices[0] if choices else None), **body}]
        if not choices:
            yield document.place, NO_STATS
        for choice, index in numbered(choices):
            yield document.place, _reading(document, body, choice, index)


def _reading(
    document: JsonDocument, body: dict[str, Any], choice: dict[str, Any], index: int | None
) -> Reading:
    stats = choice.get(PER_CHOICE_STATS)
    if stats is None:
        return NO_STATS
    if type(stats) is not dict:
        return BadRecord(f"{PER_CHOICE_STATS} is {short(stats)}; expected an object")
    counted = _with_today_names(stats)
    histogram = counted.get("acceptance_histogram")
    if type(histogram) is dict:
        histogram = dense_histogram(histogram, counted.get("num_spec_tokens"))
        if histogram is None:
            return BadRecord("the keys of acceptance_histogram are no accepted lengths")
        counted["acceptance_histogram"] = histogram
    return record_of(document, body, choice, counted, index)


def _with_today_names(stats: Mapping[str, Any]) -> dict[str, Any]:
    """Return the statistics under the names that vLLM 0.32 settled on."""
    counted = dict(stats)
    for name, older in _OLDER_NAMES.items():
        for other in older:
            if counted.get(name) is None and other in stats:
                counted[name] = stats[other]
    rates = stats.get("per_position_acceptance_rates")
    if counted.get("num_spec_tokens") is None and type(rates) is list and rates:
        counted["num_spec_tokens"] = len(rates)
    return counted
