"""Outrider's own evidence file."""

from collections import Counter
from collections.abc import Iterator

from outrider.errors import InvalidEvidence
from outrider.records.adapters.base import PlacedReading
from outrider.records.arm import Arm
from outrider.records.cadence import cadence_of
from outrider.records.evidence_reader import read_evidence
from outrider.records.prompt import PromptRecord
from outrider.records.reading import (
    AcceptanceRecord,
    BadRecord,
    InvalidRecord,
    NoMetrics,
    Reading,
    TagValue,
)
from outrider.records.request import Phase, RequestRecord
from outrider.records.run import RunSettings
from outrider.records.sources.document import Document, FileDocument

_MS_PER_S = 1000
_MAGIC, _MAGIC_OFFSET = b"DUCK", 8
"""DuckDB writes a checksum in front of its mark."""


class EvidenceAdapter:
    """Reads every measured request of a run."""

    name = "evidence"

    def recognises(self, document: Document) -> bool:
        """Say yes to a DuckDB database."""
        return isinstance(document, FileDocument) and document.magic.startswith(
            _MAGIC, _MAGIC_OFFSET
        )

    def convert(self, document: Document) -> Iterator[PlacedReading]:
        """Yield a reading for every request; warm-up and plain decoding say nothing."""
        if not isinstance(document, FileDocument):
            yield document.place, BadRecord("it is not an evidence file")
            return
        try:
            evidence = read_evidence(document.path)
        except InvalidEvidence as error:
            yield document.place, BadRecord(str(error))
            return
        if not evidence.requests:
            yield document.place, NoMetrics("a run that was interrupted before its first request")
        arms = {arm.name: arm for arm in evidence.settings.arms}
        prompts = {prompt.prompt_id: prompt for prompt in evidence.prompts}
        sharing = Counter((arm.method, arm.num_speculative_tokens) for arm in arms.values())
        for request in evidence.requests:
            arm = arms.get(request.arm)
            if arm is None:
                yield (
                    document.place,
                    BadRecord(f"a request of an arm {request.arm!r} unknown to it"),
                )
                continue
            alone = sharing[arm.method, arm.num_speculative_tokens] == 1
            tags = _tags(request, arm, evidence.settings, prompts.get(request.prompt_id))
            yield (
                document.place,
                _reading(request, arm, tags if alone else {"arm": arm.name, **tags}),
            )


def _reading(request: RequestRecord, arm: Arm, tags: dict[str, TagValue]) -> Reading:
    if request.phase is Phase.WARMUP:
        return NoMetrics("warm-up")
    if not arm.speculates:
        return NoMetrics("no speculation: nothing was drafted")
    drafts = [step for step in request.steps if step.drafted]
    drafted = [step.drafted for step in drafts]
    accepted = [step.accepted for step in drafts]
    try:
        # Each step begins where the one before ended, and ends with its tokens.
        cadence = cadence_of([[step.step_s for step in request.steps]], unit_ms=_MS_PER_S)
    except InvalidRecord as error:
        return BadRecord(f"step_s: {error}")
    return AcceptanceRecord(
        engine="outrider",
        cluster=request.prompt_id,
        k=arm.num_speculative_tokens,
        steps=len(drafts),
        accepted=sum(accepted),
        drafted=sum(drafted),
        histogram=_histogram(accepted, arm.num_speculative_tokens),
        per_step_accepted=accepted,
        per_step_drafted=drafted,
        decode_steps=len(request.steps),
        prompt_tokens=request.prompt_tokens,
        completion_tokens=len(request.output_token_ids),
        cadence=cadence,
        tags=tags,
    )


def _histogram(accepted: list[int], k: int) -> tuple[int, ...]:
    """Return (H_0 ... H_K), longer than that where a step says that it accepted more."""
    steps = Counter(accepted)
    return tuple(steps[length] for length in range(max([k, *accepted]) + 1))


def _tags(
    request: RequestRecord, arm: Arm, settings: RunSettings, prompt: PromptRecord | None
) -> dict[str, TagValue]:
    tags: dict[str, TagValue] = {
        "method": arm.method,
        "model": settings.model,
        "temperature": settings.temperature,
        "finish_reason": str(request.finish_reason),
    }
    if prompt is not None:
        tags["kind"] = prompt.kind
    return tags
