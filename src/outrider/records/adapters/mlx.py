"""mlx servers: draft counts like llama-server's, with the rounds, which are the steps."""

from collections.abc import Iterator, Mapping
from typing import Any

from outrider.records.adapters.base import PlacedReading
from outrider.records.adapters.json_fields import MLX_KEYS, json_value, mapping, not_a_body
from outrider.records.adapters.llama_server import timed_fields
from outrider.records.reading import AcceptanceRecord, Basis, NoMetrics, Reading
from outrider.records.sources.document import Document, JsonDocument

NOTHING_DRAFTED = NoMetrics("nothing was drafted, or no draft model (its counts are null or 0)")

_PLACES = ("timings", "usage")


class MlxAdapter:
    """One record per body; drafts accepted past the end of the answer may be among the accepted."""

    name = "mlx"

    def recognises(self, document: Document) -> bool:
        """Whether an answer's timings or usage tell of draft rounds, if only as null."""
        return bool(_counts(json_value(document)))

    def convert(self, document: Document) -> Iterator[PlacedReading]:
        """Read the one record of a body."""
        body = json_value(document)
        counts = _counts(body)
        if not counts or type(document) is not JsonDocument:
            yield document.place, not_a_body("an mlx server", body)
        else:
            yield document.place, _reading(document, body, counts)


def _counts(value: Any) -> Mapping[str, Any]:
    body = mapping(value)
    for name in _PLACES:
        place = body.get(name)
        if type(place) is dict and not MLX_KEYS.isdisjoint(place):
            return place
    return {}


def _reading(document: JsonDocument, body: dict[str, Any], counts: Mapping[str, Any]) -> Reading:
    accepted = counts.get("draft_n_accepted")
    if accepted is None:
        accepted = counts.get("accepted_draft_tokens")
    rounds, drafted = counts.get("draft_rounds"), counts.get("draft_n")
    if not (rounds or drafted or accepted):
        return NOTHING_DRAFTED
    fields = timed_fields(document, body, mapping(body.get("timings")))
    if fields["completion_tokens"] is None:
        fields["completion_tokens"] = mapping(body.get("usage")).get("completion_tokens")
    kind = counts.get("draft_kind")
    if type(kind) is str:
        fields["tags"]["method"] = kind
    basis: Basis = "counted"
    if rounds is None:
        rounds, basis = _steps_from_tokens(fields["completion_tokens"], accepted), "estimated"
    return AcceptanceRecord(
        engine="mlx",
        steps=rounds,
        steps_basis=basis,
        accepted=accepted,
        drafted=drafted,
        **fields,
    )


def _steps_from_tokens(tokens: Any, accepted: Any) -> int | None:
    if type(tokens) is not int or type(accepted) is not int:
        return None
    return max(tokens - accepted, 0)
