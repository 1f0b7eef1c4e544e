"""SGLang: `sglext.spec_tokens_details` of OpenAI bodies, `meta_info` of native ones."""

from collections.abc import Iterator, Mapping
from typing import Any

from outrider.records.adapters.base import PlacedReading
from outrider.records.adapters.json_fields import (
    SGLANG_CHOICE_KEY,
    answer_fields,
    choices_of,
    json_value,
    mapping,
    mismatch,
    not_a_body,
    repeats_itself,
    short,
)
from outrider.records.reading import AcceptanceRecord, BadRecord, Basis, NoMetrics, Reading
from outrider.records.sources.document import Document, JsonDocument

NOT_ASKED_FOR = NoMetrics(
    "SGLang tells of speculation only when asked: send return_spec_tokens_details: true"
)
NOTHING_SAID = NoMetrics("SGLang's meta_info says nothing of speculation: the server has none on")
ALL_ZERO = NoMetrics("SGLang's counters read 0 with an answer there: it fills in 0 for unknown")

_TOLERANCE = 1e-3
_ACCEPTED = ("spec_num_correct_drafts", "spec_accept_token_num")
_PROPOSED = ("spec_num_proposed_drafts", "spec_draft_token_num")
_HISTOGRAM = ("spec_correct_drafts_histogram", "spec_accept_histogram")


class SglangAdapter:
    """One record per answer; drafted counts are nominal, steps times the configured width."""

    name = "sglang"

    def recognises(self, document: Document) -> bool:
        """Whether it has SGLang's extension, its native metadata or its own key on the choices."""
        value = json_value(document)
        if type(value) is list:
            return bool(value) and all(_is_native(body) for body in value)
        if type(value) is not dict:
            return False
        if type(value.get("choices")) is not list:
            return _is_native(value)
        return "sglext" in value or any(SGLANG_CHOICE_KEY in choice for choice in choices_of(value))

    def convert(self, document: Document) -> Iterator[PlacedReading]:
        """Read one record per answer of a body."""
        value = json_value(document)
        if type(document) is not JsonDocument:
            yield document.place, not_a_body("SGLang", value)
        elif type(value) is list:
            for index, body in enumerate(value):
                yield document.place, _native(document, body, index if len(value) > 1 else None)
        elif _is_native(value):
            yield document.place, _native(document, value, None)
        elif type(value) is dict:
            for reading in _extended(document, value):
                yield document.place, reading
        else:
            yield document.place, not_a_body("SGLang", value)


def _is_native(body: Any) -> bool:
    return (
        type(body) is dict
        and type(body.get("meta_info")) is dict
        and ("text" in body or "output_ids" in body)
    )


def _native(document: JsonDocument, body: Any, index: int | None) -> Reading:
    if not _is_native(body):
        return not_a_body("SGLang", body)
    meta = body["meta_info"]
    finish = mapping(meta.get("finish_reason"))
    # The same facts as in an OpenAI body, under its names.
    choice = {
        "text": body.get("text"),
        "finish_reason": finish.get("type"),
        SGLANG_CHOICE_KEY: finish.get("matched"),
    }
    fields = answer_fields(document, {**body, "id": meta.get("id")}, choice, index)
    for name in ("prompt_tokens", "completion_tokens", "cached_tokens"):
        fields[name] = meta.get(name)
    return _reading(meta, choice, fields, meta.get("completion_tokens")) or NOTHING_SAID


def _extended(document: JsonDocument, body: dict[str, Any]) -> Iterator[Reading]:
    details = mapping(body.get("sglext")).get("spec_tokens_details")
    choices = choices_of(body)
    listed = details if type(details) is list else [details]
    several = len(listed) > 1 or len(choices) > 1
    tokens = mapping(body.get("usage")).get("completion_tokens")
    if not listed:
        yield NOT_ASKED_FOR
    for place, told in enumerate(listed):
        if told is None:
            yield NOT_ASKED_FOR
        elif type(told) is not dict:
            yield BadRecord(f"spec_tokens_details is {short(told)}; expected an object")
        else:
            choice = choices[place] if place < len(choices) else {}
            fields = answer_fields(document, body, choice, place if several else None)
            yield _reading(told, choice, fields, tokens) or NOT_ASKED_FOR


def _first(details: Mapping[str, Any], names: tuple[str, ...]) -> Any:
    for name in names:
        value = details.get(name)
        if value is not None:
            return value
    return None


def _reading(
    details: Mapping[str, Any], choice: Mapping[str, Any], fields: dict[str, Any], tokens: Any
) -> Reading | None:
    """Return the reading of one answer, None if nothing of speculation is told.

    `tokens` are those of all answers of the body.
    """
    steps = details.get("spec_verify_ct")
    accepted, proposed = _first(details, _ACCEPTED), _first(details, _PROPOSED)
    histogram = _first(details, _HISTOGRAM)
    if steps is None and accepted is None and histogram is None:
        return None
    if histogram is not None and type(histogram) is not list:
        return BadRecord(f"the histogram is {short(histogram)}; expected a list")
    if not (steps or accepted or proposed or any(histogram or ())) and tokens != 0:
        return ALL_ZERO
    # 0 and [] stand for unknown where there were steps.
    drafted = proposed or (None if steps else proposed)
    histogram = histogram or None
    basis: Basis = "counted"
    if histogram is None and drafted is None and not accepted:
        accepted = _accepted_from_tokens(steps, fields.get("completion_tokens"))
        basis = "estimated"
    elif wrong := _contradiction(details, steps, accepted, proposed, fields):
        return BadRecord(wrong)
    k = _nominal_k(steps, drafted, histogram)
    return AcceptanceRecord(
        engine="sglang",
        k=k,
        histogram=histogram,
        steps=steps,
        accepted=accepted,
        accepted_basis=basis,
        drafted=drafted,
        drafted_basis="nominal",
        repetitive=repeats_itself(histogram, k, choice),
        **fields,
    )


def _contradiction(
    details: Mapping[str, Any], steps: Any, accepted: Any, proposed: Any, fields: Mapping[str, Any]
) -> str | None:
    tokens = fields.get("completion_tokens")
    return mismatch(
        "spec_accept_rate",
        details.get("spec_accept_rate") or None,
        accepted,
        proposed,
        tolerance=_TOLERANCE,
    ) or mismatch(
        "spec_accept_length",
        details.get("spec_accept_length") or None,
        tokens,
        steps,
        tolerance=_TOLERANCE,
    )


def _accepted_from_tokens(steps: Any, tokens: Any) -> int | None:
    if type(steps) is not int or type(tokens) is not int:
        return None
    return max(tokens - steps, 0)


def _nominal_k(steps: Any, drafted: Any, histogram: list[Any] | None) -> int | None:
    """Return the configured width, None where it varied: the histogram's length does not tell."""
    if type(steps) is not int or type(drafted) is not int or steps <= 0 or drafted <= 0:
        return None
    k, rest = divmod(drafted, steps)
    if rest or any((histogram or [])[k + 1 :]):
        return None
    return k
