"""The result file of `vllm bench serve`."""

import math
import re
from collections.abc import Iterator, Mapping
from typing import Any

from outrider.acceptance.tokens import peak_below_average
from outrider.records.adapters.base import PlacedReading
from outrider.records.adapters.json_fields import json_value, mapping, mismatch, short
from outrider.records.adapters.positions import evident_k, histogram_of_positions
from outrider.records.adapters.vllm_bench_gaps import gaps_of
from outrider.records.cadence import cadence_of
from outrider.records.reading import (
    AcceptanceRecord,
    BadRecord,
    InvalidRecord,
    NoMetrics,
    Reading,
    Scope,
    TagValue,
)
from outrider.records.sources.document import Document, JsonDocument

_OWN = ("completed", "total_output_tokens", "output_throughput", "request_throughput")
_SPECULATION = "spec_decode_"
_TOLERANCE = 1e-6
_MS_PER_S = 1000
_RESULT_KEYS = re.compile(
    r"date|endpoint_type|tokenizer_id|dataset_.*|(mean|median|std|min|max|p[\d.]+)_.*|.*spec_decode_.*"
)
"""Texts that the tool writes itself; every other one was given with `--metadata`."""

_NO_SPECULATION = NoMetrics(
    "the result has no spec_decode figures:"
    " nothing was drafted during the run, or the server's /metrics could not be read"
)
_LENGTH_ALONE = NoMetrics("the result has an acceptance length without counts of tokens or steps")


class VllmBenchAdapter:
    """Reads the difference of the server's counters over a benchmark run."""

    name = "vllm-bench"

    def recognises(self, document: Document) -> bool:
        """Say yes to the totals of a run; the answers of a server have none of these keys."""
        result = mapping(json_value(document))
        return all(key in result for key in _OWN)

    def convert(self, document: Document) -> Iterator[PlacedReading]:
        """Yield the reading of one run."""
        value = json_value(document)
        if type(document) is JsonDocument and type(value) is dict:
            yield document.place, _reading(value, document.tags)
        else:
            yield document.place, BadRecord(f"{short(value)} is no benchmark result of vLLM")


def _reading(result: Mapping[str, Any], envelope: Mapping[str, TagValue]) -> Reading:
    if not any(key.startswith(_SPECULATION) for key in result):
        return _LENGTH_ALONE if "accept_length" in result else _NO_SPECULATION
    steps = _whole(result.get("spec_decode_num_drafts"))
    accepted = _whole(result.get("spec_decode_accepted_tokens"))
    drafted = _whole(result.get("spec_decode_draft_tokens"))
    rates = result.get("spec_decode_per_position_acceptance_rates") or []
    wrong = _wrong(steps, accepted, drafted, rates) or _contradiction(
        result, steps, accepted, drafted
    )
    if wrong is not None:
        return BadRecord(wrong)
    if steps == 0:
        return NoMetrics("nothing was drafted during the run")
    completed = _count_or_none(result.get("completed"))
    gaps = gaps_of(result)
    try:
        cadence = cadence_of(gaps or (), unit_ms=_MS_PER_S)
    except InvalidRecord as error:
        return BadRecord(f"itls: {error}")
    return AcceptanceRecord(
        engine="vllm",
        scope=Scope.BENCHMARK,
        requests=completed,
        k=len(rates) or evident_k(steps, drafted),
        histogram=histogram_of_positions(steps, accepted, _positions(rates, steps)),
        steps=steps,
        accepted=accepted,
        drafted=drafted,
        prompt_tokens=_count_or_none(result.get("total_input_tokens")),
        completion_tokens=_count_or_none(result.get("total_output_tokens")),
        # The tokens are of all that were completed, and so have the chunks to be.
        chunks=sum(len(each) + 1 for each in gaps) if gaps and len(gaps) == completed else None,
        cadence=cadence,
        tags={**envelope, **_tags(result)},
    )


def _wrong(steps: Any, accepted: Any, drafted: Any, rates: Any) -> str | None:
    for name, count in (("drafts", steps), ("accepted", accepted), ("drafted", drafted)):
        if not (_is_count(count) or (name == "drafted" and count is None)):
            return f"{name} is {short(count)}; expected a whole number from 0"
    if not (type(rates) is list and all(map(_is_fraction, rates))):
        return "the acceptance rates by position are not all fractions of 0 to 1"
    return None


def _positions(rates: list[float], steps: int) -> list[int]:
    """Return the steps that accepted each position; empty where the rates were rounded."""
    counts = [round(rate * steps) for rate in rates]
    exact = all(
        math.isclose(rate * steps, count, rel_tol=1e-9, abs_tol=_TOLERANCE)
        for rate, count in zip(rates, counts, strict=True)
    )
    return counts if exact else []


def _contradiction(
    result: Mapping[str, Any], steps: int, accepted: int, drafted: int | None
) -> str | None:
    """Say which ratio the counts beside it do not give; None if there is none."""
    rate = result.get("spec_decode_acceptance_rate")
    return mismatch(
        "spec_decode_acceptance_length",
        result.get("spec_decode_acceptance_length"),
        accepted,
        steps,
        plus=1,
        tolerance=_TOLERANCE,
    ) or mismatch(
        "spec_decode_acceptance_rate, in percent,",
        rate,
        100 * accepted,
        drafted,
        tolerance=_TOLERANCE,
    )


def _tags(result: Mapping[str, Any]) -> dict[str, TagValue]:
    tags: dict[str, TagValue] = {
        key: value
        for key, value in result.items()
        if isinstance(value, str) and value and not _RESULT_KEYS.fullmatch(key)
    }
    tags.pop("model_id", None)
    for key, name in (("model_id", "model"), ("request_rate", "request_rate")):
        value: Any = result.get(key)
        if type(value) is str or _is_number(value):
            tags[name] = value
    concurrency: Any = result.get("max_concurrency")
    if _is_number(concurrency):
        tags["concurrency"] = concurrency
    peak: Any = result.get("max_output_tokens_per_s")
    average: Any = result.get("output_throughput")
    if _is_number(peak) and _is_number(average) and peak_below_average(peak, average):
        tags["chunks_counted_as_tokens"] = "yes"
    return tags


def _is_number(value: object) -> bool:
    return type(value) is int or (type(value) is float and math.isfinite(value))


def _is_count(value: object) -> bool:
    return type(value) is int and value >= 0


def _whole(value: Any) -> Any:
    """Return 7 for 7.0, and anything else as it is."""
    return int(value) if type(value) is float and value.is_integer() else value


def _is_fraction(value: object) -> bool:
    return type(value) in {int, float} and 0 <= value <= 1  # type: ignore[operator]


def _count_or_none(value: object) -> int | None:
    return value if type(value) is int else None
