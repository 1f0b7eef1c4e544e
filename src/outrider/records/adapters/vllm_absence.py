"""Why an answer of vLLM tells nothing of its speculation: the explanation that fits."""

from collections.abc import Mapping
from typing import Any

from outrider.records.adapters.json_fields import choices_of
from outrider.records.reading import BadRecord, NoMetrics
from outrider.records.sources.document import JsonDocument

_ERROR_KEYS = frozenset({"error", "id", "object", "request_id", "status", "status_code", "detail"})

ERROR = NoMetrics("an error response")
SEVERAL_ANSWERS = NoMetrics(
    "several answers to one request (n > 1, several prompts or beam search): vLLM gives no figures"
    " then; send one request for each"
)
STOP_STRING = NoMetrics(
    "a stop string ended the answer: vLLM loses the figures then; use stop_token_ids to keep them"
)
NO_USAGE = NoMetrics(
    "a stream without token counts: ask for stream_options.include_usage, the figures come with"
    " them"
)
SINGLE_EVENT = NoMetrics("a single event of a stream, without the figures of its end")
TIMING_ONLY = NoMetrics(
    "only --enable-per-request-metrics is on: start the server with"
    " --per-request-spec-decode-metrics summary or detailed, and a drafter"
)
FLAG_OFF = NoMetrics("the server does not speculate, or --per-request-spec-decode-metrics is off")
CUT = BadRecord("the stream was cut before its usage, which the figures come with")


def is_error(body: Mapping[str, Any]) -> bool:
    """Whether the body is an error response of an OpenAI-compatible server and nothing else."""
    if "choices" in body:
        return False
    if body.get("object") == "error" and "message" in body:
        return True
    return type(body.get("error")) in (dict, str) and _ERROR_KEYS.issuperset(body)


def absence(document: JsonDocument, body: Mapping[str, Any]) -> NoMetrics | BadRecord:
    """Return the first explanation that fits a body without `metrics.speculative_decoding`."""
    if body.get("error") or body.get("object") == "error":
        return ERROR
    choices = choices_of(body)
    if len(choices) > 1 or _asks_for_several(document.request):
        return SEVERAL_ANSWERS
    if choices and type(choices[0].get("stop_reason")) is str:
        return STOP_STRING
    lost = _lost_with_the_stream(document, body, choices)
    if lost is not None:
        return lost
    return TIMING_ONLY if type(body.get("metrics")) is dict else FLAG_OFF


def _lost_with_the_stream(
    document: JsonDocument, body: Mapping[str, Any], choices: list[dict[str, Any]]
) -> NoMetrics | BadRecord | None:
    unfinished = bool(choices) and choices[0].get("finish_reason") is None
    stream = document.stream
    if stream is None:
        return SINGLE_EVENT if unfinished and not body.get("usage") else None
    # Usage may come with every event, so that it alone is no sign of the end.
    if not stream.ended and (unfinished or not stream.usage_seen):
        return CUT
    return None if stream.usage_seen else NO_USAGE


def _asks_for_several(request: Mapping[str, Any] | None) -> bool:
    if request is None:
        return False
    n, prompt = request.get("n"), request.get("prompt")
    # A list of numbers is one prompt as token ids.
    several_prompts = type(prompt) is list and len(prompt) > 1 and type(prompt[0]) is not int
    return (type(n) is int and n > 1) or several_prompts or request.get("use_beam_search") is True
