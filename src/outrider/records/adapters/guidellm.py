"""GuideLLM's benchmarks: the engine's own metrics object, kept with every request."""

from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

from outrider.records.adapters.base import PlacedReading
from outrider.records.adapters.json_fields import json_value, mapping, short
from outrider.records.adapters.vllm import record_of
from outrider.records.reading import AcceptanceRecord, BadRecord, NoMetrics, Reading, TagValue
from outrider.records.sources.document import Document, JsonDocument

_UNFINISHED = ("errored", "incomplete")
_NO_REQUESTS = NoMetrics("GuideLLM kept no requests: run it without sample_size 0")
_NO_STATS = NoMetrics(
    "GuideLLM has no acceptance of the request: speculation is off, the server was not asked for"
    " per-request metrics, or GuideLLM is older than 0.8"
)


class GuidellmAdapter:
    """Reads the JSON output of GuideLLM 0.8 and later."""

    name = "guidellm"

    def recognises(self, document: Document) -> bool:
        """Say yes to an object with benchmarks that keep their requests by status."""
        benchmarks = mapping(json_value(document)).get("benchmarks")
        return (
            type(benchmarks) is list
            and bool(benchmarks)
            and type(mapping(benchmarks[0]).get("requests")) is dict
        )

    def convert(self, document: Document) -> Iterator[PlacedReading]:
        """Yield a reading for every request of every benchmark."""
        benchmarks = mapping(json_value(document)).get("benchmarks")
        if type(document) is not JsonDocument or type(benchmarks) is not list:
            yield document.place, BadRecord("it holds no benchmarks of GuideLLM")
            return
        if not benchmarks:
            yield document.place, _NO_REQUESTS
        for benchmark in benchmarks:
            tags = {**document.tags, **_tags(mapping(mapping(benchmark).get("config")))}
            requests = mapping(mapping(benchmark).get("requests"))
            for reading in _benchmark(document, requests, tags):
                yield document.place, reading


def _benchmark(
    document: JsonDocument, requests: Mapping[str, Any], tags: Mapping[str, TagValue]
) -> Iterator[Reading]:
    successful = _listed(requests.get("successful"))
    unfinished = [(status, _listed(requests.get(status))) for status in _UNFINISHED]
    if not successful and not any(listed for _, listed in unfinished):
        yield _NO_REQUESTS
    for request in successful:
        yield _request(document, request, tags)
    for status, listed in unfinished:
        for _ in listed:
            yield NoMetrics(f"the request is {status}")


def _request(document: JsonDocument, request: Any, tags: Mapping[str, TagValue]) -> Reading:
    if type(request) is not dict:
        return BadRecord(f"{short(request)} is no request of GuideLLM")
    counted = mapping(request.get("response_metrics")).get("speculative_decoding")
    if counted is None:
        return _NO_STATS
    if type(counted) is not dict:
        return BadRecord(
            f"response_metrics.speculative_decoding is {short(counted)}; expected an object"
        )
    asked, answered = mapping(request.get("input_metrics")), mapping(request.get("output_metrics"))
    body = {
        "id": request.get("response_id") or request.get("request_id"),
        "usage": {
            "prompt_tokens": asked.get("text_tokens"),
            "prompt_tokens_details": {"cached_tokens": asked.get("cached_tokens")},
            "completion_tokens": answered.get("text_tokens"),
        },
    }
    reading = record_of(document, body, {"text": request.get("output")}, counted)
    if not isinstance(reading, AcceptanceRecord):
        return reading
    # Whether it was streamed is not told, so the tags of a body do not hold.
    return msgspec.structs.replace(reading, tags={**tags, **_sent(request.get("request_args"))})


def _tags(config: Mapping[str, Any]) -> dict[str, TagValue]:
    """Return what the benchmark was: its strategy, and the load that it made."""
    strategy = mapping(config.get("strategy"))
    model = mapping(config.get("backend")).get("model")
    tags: dict[str, TagValue] = {"model": model} if type(model) is str else {}
    kind = strategy.get("type_")
    if type(kind) is str:
        tags["strategy"] = kind
    for key, tag in (
        ("max_concurrency", "concurrency"),
        ("streams", "concurrency"),
        ("rate", "rate"),
    ):
        if type(strategy.get(key)) in (int, float):
            tags[tag] = strategy[key]
    return tags


def _sent(arguments: Any) -> dict[str, TagValue]:
    """Return the temperature, which a request keeps in the JSON text of what was sent."""
    if type(arguments) is not str:
        return {}
    try:
        body = mapping(mapping(msgspec.json.decode(arguments)).get("body"))
    except (msgspec.DecodeError, UnicodeError):
        return {}
    return {
        key: body[key]
        for key, kinds in (("temperature", (int, float)), ("model", (str,)))
        if type(body.get(key)) in kinds
    }


def _listed(value: Any) -> list[Any]:
    return value if type(value) is list else []
