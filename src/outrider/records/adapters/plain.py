"""A histogram typed by hand: `[39, 1, 0, 3]`, or an object with it and what else is known."""

from collections.abc import Iterator
from typing import Any

from outrider.records.adapters.base import PlacedReading
from outrider.records.adapters.json_fields import dense_histogram, json_value, short
from outrider.records.reading import AcceptanceRecord, BadRecord, Reading
from outrider.records.sources.document import Document, JsonDocument

_COUNTS = ("steps", "accepted", "drafted", "completion_tokens", "prompt_tokens", "requests")
_NOT_TAGS = frozenset({"k", "id", "histogram", *_COUNTS})
_FEWEST_ENTRIES = 2


class PlainAdapter:
    """One record for nobody knows how many requests, with K from the length unless it is given."""

    name = "plain"

    def recognises(self, document: Document) -> bool:
        """Whether it is a list of two or more whole numbers, or an object with such a histogram."""
        value = json_value(document)
        if type(value) is dict:
            histogram = value.get("histogram")
            if type(histogram) is dict:
                return bool(histogram) and dense_histogram(histogram, None) is not None
            return _are_counts(histogram)
        return _are_counts(value)

    def convert(self, document: Document) -> Iterator[PlacedReading]:
        """Read the one record."""
        yield document.place, _reading(document)


def _are_counts(value: Any) -> bool:
    return (
        type(value) is list
        and len(value) >= _FEWEST_ENTRIES
        and all(type(count) is int for count in value)
    )


def _reading(document: Document) -> Reading:
    value = json_value(document)
    typed = value if type(value) is dict else {"histogram": value}
    k, histogram = typed.get("k"), typed.get("histogram")
    if type(histogram) is dict:
        histogram = dense_histogram(histogram, k)
    if type(document) is not JsonDocument or histogram is None or not _are_counts(histogram):
        return BadRecord(f"{short(typed.get('histogram'))} is no list of two or more counts")
    identity = typed.get("id")
    tags = {
        name: told
        for name, told in typed.items()
        if name not in _NOT_TAGS and isinstance(told, (str, int, float))
    }
    counts: dict[str, Any] = {name: typed.get(name) for name in _COUNTS}
    return AcceptanceRecord(
        engine="typed",
        id=identity if type(identity) is str else None,
        k=len(histogram) - 1 if k is None else k,
        histogram=histogram,
        tags={**document.tags, **tags},
        **counts,
    )
