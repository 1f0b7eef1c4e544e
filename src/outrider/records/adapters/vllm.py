"""vLLM from 0.32 on: `metrics.speculative_decoding` beside the choices of a response body.

Or in each choice, as `outrider serve` has it for several answers to one prompt.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from outrider.records.adapters.base import PlacedReading
from outrider.records.adapters.json_fields import (
    ANSWER_OBJECTS,
    MLX_KEYS,
    PER_CHOICE_STATS,
    SGLANG_CHOICE_KEY,
    TENSORRT_LLM_KEYS,
    answer_fields,
    choices_of,
    json_value,
    mapping,
    mismatch,
    not_a_body,
    numbered,
    repeats_itself,
    short,
)
from outrider.records.adapters.vllm_absence import absence, is_error
from outrider.records.adapters.vllm_lines import PlainBody, batches, plain_body
from outrider.records.batch import RecordBatch
from outrider.records.reading import AcceptanceRecord, BadRecord, Reading
from outrider.records.sources.document import Document, JsonDocument

_TOLERANCE = 1e-6
_OF_OTHER_ENGINES = ("sglext", "timings", "meta_info", PER_CHOICE_STATS)
_CHOICES_OF_OTHER_ENGINES = TENSORRT_LLM_KEYS | {PER_CHOICE_STATS, SGLANG_CHOICE_KEY}
_VERSION_PREFIX = "vllm-"


class VllmAdapter:
    """One record per body; bodies of no engine in particular are answers without metrics."""

    name = "vllm"

    def plain_line(self, line: bytes) -> PlainBody | None:
        """Return the body of a line that is entirely plain."""
        return plain_body(line)

    def batches(
        self, plain: Sequence[PlainBody], lines: Sequence[int]
    ) -> tuple[list[RecordBatch], list[int]]:
        """Read plain bodies at once."""
        return batches(plain, lines)

    def recognises(self, document: Document) -> bool:
        """Whether it is an OpenAI body, or an error, that shows no sign of another engine."""
        body = json_value(document)
        if type(body) is not dict:
            return False
        choices = body.get("choices")
        if type(choices) is not list:
            return is_error(body)
        metrics = body.get("metrics")
        if type(metrics) is dict and "speculative_decoding" in metrics:
            return True
        return (
            body.get("object") in ANSWER_OBJECTS
            and not any(name in body for name in _OF_OTHER_ENGINES)
            and MLX_KEYS.isdisjoint(mapping(body.get("usage")))
            and all(_CHOICES_OF_OTHER_ENGINES.isdisjoint(choice) for choice in choices_of(body))
        )

    def convert(self, document: Document) -> Iterator[PlacedReading]:
        """Read the one record of a body, or that of each choice where choices have their own."""
        body = json_value(document)
        if type(body) is not dict or type(document) is not JsonDocument:
            yield document.place, not_a_body("vLLM", body)
            return
        choices = choices_of(body)
        counted = _counted(body)
        if counted is None and any(_counted(choice) is not None for choice in choices):
            for choice, index in numbered(choices):
                yield document.place, _reading(document, body, choice, _counted(choice), index)
        else:
            first = choices[0] if choices else {}
            yield document.place, _reading(document, body, first, counted)


def _counted(holder: Mapping[str, Any]) -> Any:
    """The counts of a body or of a choice, None without any."""
    metrics = holder.get("metrics")
    return metrics.get("speculative_decoding") if type(metrics) is dict else None


def _reading(
    document: JsonDocument,
    body: dict[str, Any],
    choice: Mapping[str, Any],
    counted: Any,
    index: int | None = None,
) -> Reading:
    if counted is None:
        return absence(document, body)
    if type(counted) is not dict:
        return BadRecord(f"metrics.speculative_decoding is {short(counted)}; expected an object")
    return record_of(document, body, choice, counted, index)


def record_of(
    document: JsonDocument,
    body: Mapping[str, Any],
    choice: Mapping[str, Any],
    counted: Mapping[str, Any],
    index: int | None = None,
) -> Reading:
    """Return the record of one answer from vLLM's object of counts.

    `index` is the place of the answer where the body has several.
    """
    get = counted.get
    steps, accepted = get("num_spec_steps"), get("num_accepted_draft_tokens")
    drafted = get("num_draft_tokens")
    wrong = _contradiction(counted, steps, accepted, drafted)
    if wrong is not None:
        return BadRecord(wrong)
    k, histogram = get("num_spec_tokens"), get("acceptance_histogram")
    table = get("acceptance_histogram_by_draft_length")
    per_step_accepted, per_step_drafted = get("per_step_accepted"), get("per_step_drafted")
    for lengths in (per_step_accepted, per_step_drafted):
        if lengths is not None and type(lengths) is not list:
            return BadRecord(f"the lengths of each step are {short(lengths)}; expected a list")
    fields = answer_fields(document, body, choice, index)
    version = body.get("system_fingerprint")
    if type(version) is str and version.startswith(_VERSION_PREFIX):
        fields["tags"]["engine_version"] = version.split("-", 2)[1]
    return AcceptanceRecord(
        engine="vllm",
        k=k,
        histogram=histogram,
        steps=steps,
        accepted=accepted,
        drafted=drafted,
        per_step_accepted=per_step_accepted,
        per_step_drafted=per_step_drafted,
        draft_table=None if table is None else _draft_table(table, k),
        repetitive=repeats_itself(histogram, k, choice),
        **fields,
    )


def _contradiction(
    counted: Mapping[str, Any], steps: Any, accepted: Any, drafted: Any
) -> str | None:
    """Say which declared ratio the counts beside it do not give; None if there is none."""
    mean, rate = counted.get("mean_acceptance_length"), counted.get("draft_acceptance_rate")
    try:
        # vLLM does not round, so nearly all records are done with here.
        if mean == (1 + accepted / steps if steps else 1.0) and rate == (
            accepted / drafted if drafted else 0.0
        ):
            return None
    except (TypeError, OverflowError):
        pass
    return mismatch(
        "mean_acceptance_length", mean, accepted, steps, plus=1, tolerance=_TOLERANCE
    ) or mismatch("draft_acceptance_rate", rate, accepted, drafted, tolerance=_TOLERANCE)


def _draft_table(table: Any, k: Any) -> list[list[Any]] | None:
    """Return [drafted][accepted] of width K + 1, from a map or list of rows; None for any other."""
    if type(k) is not int:
        return None
    if type(table) is dict:
        rows = {int(key): row for key, row in table.items() if key.isdecimal() and len(key) < 4}  # noqa: PLR2004
        if len(rows) < len(table):
            return None
    elif type(table) is list:
        rows = dict(enumerate(table))
    else:
        return None
    if any(type(row) is not list or len(row) > k + 1 for row in rows.values()):
        return None
    if any(drafted > k or any(row[drafted + 1 :]) for drafted, row in rows.items()):
        return None
    full = [rows.get(drafted, []) for drafted in range(k + 1)]
    return [row + [0] * (k + 1 - len(row)) for row in full]
