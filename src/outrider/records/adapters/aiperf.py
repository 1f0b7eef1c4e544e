"""AIPerf's records of requests, and its summary of a run."""

from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

from outrider.records.adapters.base import PlacedReading
from outrider.records.adapters.json_fields import dense_histogram, json_value, mapping, short
from outrider.records.adapters.positions import evident_k
from outrider.records.adapters.vllm import record_of
from outrider.records.cadence import cadence_of
from outrider.records.reading import (
    AcceptanceRecord,
    BadRecord,
    Cadence,
    InvalidRecord,
    NoMetrics,
    Reading,
    Scope,
    TagValue,
)
from outrider.records.sources.document import Document, JsonDocument
from outrider.records.validation import MOST_COUNTED

_STATS = "spec_decode_acceptance"
_POOLED = "pooled_spec_decode_acceptance_histogram"
_ANY_ENGINE = "unknown"
"""The summary does not name the engine."""

_GAPS = "inter_chunk_latency"
"""Of events with content alone: neither the role nor the usage is one."""
_UNITS_MS = {"ns": 1e-6, "us": 1e-3, "ms": 1.0, "sec": 1e3}

_WARMUP = NoMetrics("warm-up")
_FAILED = NoMetrics("the request failed or was cancelled")
_NO_STATS = NoMetrics(
    "AIPerf has no acceptance: speculation is off, or the server was not asked for per-request"
    " metrics"
)


class AiperfAdapter:
    """Reads `profile_export.jsonl` and `profile_export_aiperf.json` of AIPerf 0.13 and later."""

    name = "aiperf"

    def recognises(self, document: Document) -> bool:
        """Say yes to a record with a benchmark phase, and to a summary of AIPerf."""
        value = json_value(document)
        return type(value) is dict and (_is_record(value) or _is_summary(value))

    def convert(self, document: Document) -> Iterator[PlacedReading]:
        """Yield the reading of a request, or one for each phase of a run."""
        value = json_value(document)
        if type(document) is not JsonDocument or type(value) is not dict:
            yield document.place, BadRecord(f"{short(value)} is no record or summary of AIPerf")
        elif _is_summary(value):
            for reading in _summary(value, document.tags):
                yield document.place, reading
        else:
            try:
                reading = _request(document, value)
            except InvalidRecord as error:
                reading = BadRecord(str(error))
            yield document.place, reading


def _is_record(value: Mapping[str, Any]) -> bool:
    return "metrics" in value and "benchmark_phase" in mapping(value.get("metadata"))


def _is_summary(value: Mapping[str, Any]) -> bool:
    return "aiperf_version" in value or _POOLED in value


def _request(document: JsonDocument, value: Mapping[str, Any]) -> Reading:
    metadata, metrics = mapping(value.get("metadata")), mapping(value.get("metrics"))
    if "warmup" in (metadata.get("phase_kind"), metadata.get("benchmark_phase")):
        return _WARMUP
    if value.get("error") is not None or metadata.get("was_cancelled") is True:
        return _FAILED
    stats = value.get(_STATS)
    if stats is None:
        return _NO_STATS
    counted = dict(mapping(stats))
    histogram = dense_histogram(
        mapping(counted.get("acceptance_histogram")), counted.get("num_spec_tokens")
    )
    if not counted or histogram is None:
        return BadRecord(f"{_STATS} has no acceptance histogram by accepted length")
    counted["acceptance_histogram"] = histogram
    body = {
        "id": metadata.get("x_request_id"),
        "usage": {
            "prompt_tokens": _figure(metrics, "input_sequence_length", "value"),
            "completion_tokens": counted.get("completion_tokens")
            or _figure(metrics, "output_sequence_length", "value"),
        },
    }
    reading = record_of(document, body, {}, counted)
    if not isinstance(reading, AcceptanceRecord):
        return reading
    engine, phase = (
        counted.get("engine"),
        metadata.get("phase_name") or metadata.get("benchmark_phase"),
    )
    # Whether it was streamed is not told, so the tags of a body do not hold.
    return msgspec.structs.replace(
        reading,
        **_stream(mapping(metrics.get(_GAPS))),
        engine=engine if type(engine) is str and engine else _ANY_ENGINE,
        tags={**document.tags, **({"phase": phase} if type(phase) is str else {})},
    )


def _summary(value: Mapping[str, Any], envelope: Mapping[str, TagValue]) -> Iterator[Reading]:
    """Yield the profiled phase and, as not used, the warm-up."""
    if _figure(value.get("warmup_metrics"), "total_spec_decode_steps", "avg"):
        yield _WARMUP
    pooled = value.get(_POOLED)
    if pooled is None:
        yield _NO_STATS
        return
    histogram = dense_histogram(mapping(pooled), None)
    if not mapping(pooled) or histogram is None:
        yield BadRecord(f"{_POOLED} is no map from accepted length to steps")
        return
    steps = _figure(value, "total_spec_decode_steps", "avg")
    drafted = _figure(value, "total_draft_tokens", "avg")
    yield AcceptanceRecord(
        engine=_ANY_ENGINE,
        scope=Scope.BENCHMARK,
        requests=_figure(value, "request_count", "avg"),
        k=evident_k(steps or 0, drafted),
        histogram=histogram,
        steps=steps,
        accepted=_figure(value, "total_accepted_draft_tokens", "avg"),
        drafted=drafted,
        prompt_tokens=_figure(value, "total_isl", "avg"),
        completion_tokens=_figure(value, "total_osl", "avg"),
        cadence=_pooled_cadence(mapping(value.get(_GAPS))),
        tags={**envelope, "phase": "profiling", **_run_tags(mapping(value.get("input_config")))},
    )


def _stream(gaps: Mapping[str, Any]) -> dict[str, Any]:
    """Return what the gaps between the events of an answer tell, as record fields."""
    listed, unit_ms = gaps.get("value"), _UNITS_MS.get(str(gaps.get("unit")))
    if type(listed) is not list or not listed or unit_ms is None:
        return {}
    return {"cadence": cadence_of([listed], unit_ms=unit_ms), "chunks": len(listed) + 1}


def _pooled_cadence(gaps: Mapping[str, Any]) -> Cadence | None:
    """Return the mean and the longest gap; how uneven single answers are is not in a summary."""
    count, mean, longest = gaps.get("count"), gaps.get("avg"), gaps.get("max")
    unit_ms = _UNITS_MS.get(str(gaps.get("unit")))
    if type(count) is not int or type(mean) is not float or unit_ms is None:
        return None
    if not 0 < count <= MOST_COUNTED or type(longest) is not float:
        return None
    return Cadence(0, 0.0, count, count * unit_ms * mean, unit_ms * longest)


def _run_tags(config: Mapping[str, Any]) -> dict[str, TagValue]:
    """Return model and concurrency where the configuration has one of each."""
    tags: dict[str, TagValue] = {}
    models = _objects(mapping(config.get("models")).get("items"))
    names = {name for model in models if type(name := model.get("name")) is str}
    if len(names) == 1:
        tags["model"] = names.pop()
    phases = [phase for phase in _objects(config.get("phases")) if phase.get("kind") != "warmup"]
    if len(phases) == 1 and type(phases[0].get("concurrency")) is int:
        tags["concurrency"] = phases[0]["concurrency"]
    return tags


def _objects(value: Any) -> list[Mapping[str, Any]]:
    return [mapping(item) for item in value] if type(value) is list else []


def _figure(metrics: Any, name: str, statistic: str) -> int | None:
    """Return a metric that is a whole number; AIPerf writes totals as an average of one."""
    value = mapping(mapping(metrics).get(name)).get(statistic)
    if type(value) is float and value.is_integer():
        return int(value)
    return value if type(value) is int else None
