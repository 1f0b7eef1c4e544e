"""What proxies and batch runs wrap around an answer: the request, and what they know of it."""

import re
from collections.abc import Iterator, Mapping
from typing import Any

from outrider.records.reading import BadRecord, NoMetrics, Place, TagValue
from outrider.records.sources.decoding import NotJson, decoded
from outrider.records.sources.document import Document, JsonDocument
from outrider.records.sources.sse import EventStreams
from outrider.records.sources.values import documents_of, is_stream

Unwrapped = Document | tuple[Place, BadRecord | NoMetrics]

MOST_TAG = 64
"""Characters of a text that is still a tag."""

_ANSWERS = ("response", "response_body", "body")
_ANSWER_KEYS = frozenset(_ANSWERS)
_REQUESTS = ("request", "request_body")
_OF_A_BODY = frozenset(
    ("choices", "usage", "meta_info", "timings", "error", "metrics", "sglext", "content", "text")
)
_ONLY_BODIES = frozenset(("choices", "usage", "meta_info", "timings"))
_PARAMETERS = {
    "temperature": "temperature",
    "n": "n",
    "stream": "stream",
    "max_tokens": "max_tokens",
    "max_completion_tokens": "max_tokens",
    "max_new_tokens": "max_tokens",
    "n_predict": "max_tokens",
}
_COUNTING = frozenset(("concurrency", "temperature", "k", "num_speculative_tokens"))
# The first are what every record is told apart by, the others say nothing of the answer.
_NO_TAGS = frozenset(
    ("engine", "scope", "id", "uuid", "url", "object", "created", "date", "time", "timestamp")
)
_VERBS = frozenset(("GET", "POST", "PUT"))
_IDENTITY = re.compile(r"(?:^|_)(?:id|at|ts|uuid|hash|date|time|timestamp)$|Id$|At$")
_MOMENT = re.compile(r"\d{4}-\d\d-\d\d|\d\d:\d\d:\d\d|[0-9a-f]{8}-[0-9a-f]{4}-")


def is_wrapped(value: object) -> bool:
    """Whether a JSON value may be an envelope; a body of an engine never is."""
    return (
        type(value) is dict
        and "choices" not in value
        and not _ANSWER_KEYS.isdisjoint(value)
        and _ONLY_BODIES.isdisjoint(value)
    )


def unwrapped(document: JsonDocument) -> Iterator[Unwrapped]:
    """Return the bodies in an envelope with what it tells of them, or the document as it is."""
    envelope: Mapping[str, Any] = document.value
    answer = _answer(envelope)
    request = _request(envelope)
    if answer is None and (request is not None or "custom_id" in envelope):
        yield document.place, NoMetrics("the request failed or its answer was not kept")
        return
    found = [*_bodies(document.place, answer)]
    if not found:
        yield document
        return
    tags = {**scalar_tags(envelope), **_request_tags(request or {})}
    for one in found:
        if isinstance(one, JsonDocument):
            one.tags, one.request = tags, request
        yield one


def _answer(envelope: Mapping[str, Any]) -> object:
    """Return what stands for the answer, out of the shell of HTTP around it if there is one."""
    answer = next((envelope[name] for name in _ANSWERS if envelope.get(name) is not None), None)
    if isinstance(answer, dict) and _OF_A_BODY.isdisjoint(answer) and "body" in answer:
        answer = answer["body"]
    return _from_text(answer) if isinstance(answer, str) else answer


def _request(envelope: Mapping[str, Any]) -> Mapping[str, Any] | None:
    for name in _REQUESTS:
        request = envelope.get(name)
        if isinstance(request, dict) and isinstance(request.get("body"), (dict, str)):
            request = request["body"]
        if isinstance(request, str):
            request = _from_text(request)
        if isinstance(request, dict):
            return request
    return None


def _from_text(text: str) -> object:
    """Return the JSON that a text holds; any other text as it is."""
    try:
        return decoded(text.encode("utf-8", "replace")) if text.lstrip()[:1] in "{[" else text
    except NotJson:
        return text


def _bodies(place: Place, answer: object) -> Iterator[Unwrapped]:
    if isinstance(answer, str):
        known = is_stream(answer.lstrip().encode("utf-8", "replace"))
    elif isinstance(answer, list):
        known = bool(answer) and all(_is_body(one) for one in answer)
    else:
        known = _is_body(answer)
    if not known:
        return
    streams = EventStreams(place.source)
    for one in (*documents_of(place, answer, streams), *streams.finish()):
        if isinstance(one, (JsonDocument, tuple)):
            yield one


def _is_body(value: object) -> bool:
    return isinstance(value, dict) and not _OF_A_BODY.isdisjoint(value)


def scalar_tags(envelope: Mapping[str, Any]) -> dict[str, TagValue]:
    """Return the scalars beside an answer that segments can be made by."""
    tags: dict[str, TagValue] = {}
    for name, value in envelope.items():
        if name in ("metadata", "tags") and isinstance(value, dict):
            tags.update((key, one) for key, one in value.items() if _is_tag(key, one))
        elif _is_tag(name, value):
            tags[name] = value
    return tags


def _is_tag(name: str, value: object) -> bool:
    if name in _NO_TAGS or name in _ANSWER_KEYS or name in _REQUESTS or _IDENTITY.search(name):
        return False
    if isinstance(value, str):
        return 0 < len(value) <= MOST_TAG and not (_MOMENT.search(value) or value in _VERBS)
    return isinstance(value, bool) or (
        isinstance(value, (int, float)) and name.lower() in _COUNTING
    )


def _request_tags(request: Mapping[str, Any]) -> dict[str, TagValue]:
    sampling = request.get("sampling_params")
    told = {**request, **sampling} if isinstance(sampling, dict) else request
    metadata = request.get("metadata")
    tags = scalar_tags({"metadata": metadata}) if isinstance(metadata, dict) else {}
    for name, tag in _PARAMETERS.items():
        value = told.get(name)
        if isinstance(value, (bool, int, float)):
            tags[tag] = value
    if told.get("stop"):
        tags["stop"] = "yes"
    return tags
