"""The keys that records are grouped by, and the bands that numbers fall into."""

from math import inf
from typing import TypeAlias

from outrider.records.reading import AcceptanceRecord, TagValue

SegmentValue: TypeAlias = str | int | None
"""None: the record does not say."""

BASE_KEYS = ("scope", "engine", "k")
"""Records that differ in one of these are never added."""

IDENTITY_KEYS = ("model", "method", "drafter", "arm")
"""Where records tell them, records that differ in one of these are not added either."""

FIRST_CHUNK = "first_chunk"
WARNING_KEYS = ("counters_reset", "chunks_counted_as_tokens", FIRST_CHUNK)
"""Tags that tell of something wrong with the numbers, if not of acceptance then of speed."""

OUTCOME_KEYS = ("output_length", "finish_reason")
"""What is known only once an answer is there, so that nothing can be decided by it beforehand."""

_LENGTH_BANDS = tuple(
    "0–127" if bits < 8 else f"{1 << 2 * (bits // 2) - 1}–{(1 << 2 * (bits // 2) + 1) - 1}"  # noqa: PLR2004
    for bits in range(40)
)
"""By bit length: 0–127, 128–511, 512–2047, ..., each four times as wide as the one before."""


def length_band(tokens: int | None) -> str | None:
    """Return the band of a length in tokens.

    >>> [length_band(tokens) for tokens in (0, 127, 128, 511, 512)]
    ['0–127', '0–127', '128–511', '128–511', '512–2047']
    """
    if tokens is None:
        return None
    return _LENGTH_BANDS[min(tokens.bit_length(), len(_LENGTH_BANDS) - 1)]


def temperature_band(temperature: float) -> str:
    """Return "0", or the band of half a degree that the temperature lies in."""
    if temperature <= 0:
        return "0"
    for upper in (0.5, 1.0, 1.5):
        if temperature <= upper:
            return f"{upper - 0.5:g}–{upper:g}"
    return "above 1.5"


def concurrency_band(concurrency: float) -> str:
    """Return the band between powers of two that the number of concurrent requests lies in."""
    whole = max(1, int(concurrency))
    if whole == 1:
        return "1"
    low = 1 << (whole.bit_length() - 1)
    return f"{low}–{2 * low - 1}"


def segment_values(record: AcceptanceRecord) -> dict[str, SegmentValue]:
    """Return every key that the record can be grouped by besides the base keys."""
    values: dict[str, SegmentValue] = {}
    for name, value in record.tags.items():
        if name in _BANDS and isinstance(value, (int, float)) and abs(value) < inf:
            if name == "temperature":
                values["sampling"] = "greedy" if value <= 0 else "random"
            values[name] = _BANDS[name](value)
        else:
            values[name] = value if type(value) is str else _text(value)
    # The sums of several answers have no length of their own.
    if record.prompt_tokens is not None and record.requests == 1:
        values["prompt_length"] = length_band(record.prompt_tokens)
    if record.completion_tokens is not None and record.requests == 1:
        values["output_length"] = length_band(record.completion_tokens)
    return values


_BANDS = {"temperature": temperature_band, "concurrency": concurrency_band}


def _text(value: TagValue) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"{value:g}" if isinstance(value, float) else str(value)
