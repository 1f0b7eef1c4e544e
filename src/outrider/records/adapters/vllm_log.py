"""The log of a vLLM server: one line of acceptance for every interval in which it drafted."""

import re
from collections.abc import Iterator

from outrider.records.adapters.base import PlacedReading
from outrider.records.adapters.positions import histogram_of_positions
from outrider.records.adapters.printed_steps import printed_steps
from outrider.records.reading import (
    AcceptanceRecord,
    BadRecord,
    NoMetrics,
    Place,
    Reading,
    Scope,
)
from outrider.records.sources.document import Document, TextDocument

_MARK = "SpecDecoding metrics:"
_OLD_MARK = "Speculative metrics:"
_LOG_LINE = re.compile(
    rf"{_MARK}|{_OLD_MARK}|^.{{0,80}}\b(?:DEBUG|INFO|WARNING|ERROR) \d\d-\d\d \d\d:\d\d:\d\d "
    r"\[?\w+\.py:\d+\]",
    re.MULTILINE,
)
_COLOUR = re.compile(r"\x1b\[[0-9;]*[A-Za-z]")
_MEAN = re.compile(r"Mean acceptance length: (\d{1,3}\.\d+)(?=,|\s|$)")
_ACCEPTED = re.compile(r"Accepted: (\d{1,15}) tokens")
_DRAFTED = re.compile(r"Drafted: (\d{1,15}) tokens")
_RATES = re.compile(
    r"Per-position acceptance rate: ((?:[01]\.\d+|nan)(?:, ?(?:[01]\.\d+|nan))*)(?=, ?[A-Z]|\s*$)"
)
_MOST_SHOWN = 160

_NO_LINES = (
    "the log has no SpecDecoding metrics lines:"
    " speculation is off, log stats are off, or nothing was drafted"
)
_OLD_LINE = "an older vLLM logs running totals of drafted and accepted tokens, not of steps"
_WITHOUT_MEAN = "this vLLM logs drafted and accepted tokens, but not of how many steps"
_IDLE = "steps were counted in the interval, but nothing was drafted"


class VllmLogAdapter:
    """Reads `SpecDecoding metrics:` lines, whatever else the log holds."""

    name = "vllm-log"

    def recognises(self, document: Document) -> bool:
        """Say yes to text with such a line, or with lines as vLLM logs them."""
        return isinstance(document, TextDocument) and _LOG_LINE.search(document.head) is not None

    def convert(self, document: Document) -> Iterator[PlacedReading]:
        """Yield a reading for every interval of the log."""
        if not isinstance(document, TextDocument):
            yield document.place, BadRecord("it is not the text of a log")
            return
        told = False
        for number, line in document.lines():
            if _MARK in line:
                told = True
                yield Place(document.place.source, number), _interval(line.partition(_MARK)[2])
            elif _OLD_MARK in line:
                told = True
                yield Place(document.place.source, number), NoMetrics(_OLD_LINE)
        if not told:
            yield document.place, NoMetrics(_NO_LINES)


def _interval(text: str) -> Reading:
    text = _COLOUR.sub("", text).strip()
    mean, accepted_text = _MEAN.search(text), _ACCEPTED.search(text)
    drafted_text, rates_text = _DRAFTED.search(text), _RATES.search(text)
    whole = accepted_text and drafted_text and (rates_text or "Per-position" not in text)
    if whole and mean is None and "Mean acceptance length" not in text:
        return NoMetrics(_WITHOUT_MEAN)
    if not (whole and mean and accepted_text and drafted_text):
        return BadRecord(f"a cut or altered line: {_MARK} {text[:_MOST_SHOWN]}")
    accepted, drafted = int(accepted_text[1]), int(drafted_text[1])
    if drafted == 0:
        return NoMetrics(_IDLE)
    rates = rates_text[1].replace(" ", "").split(",") if rates_text else []
    steps, basis = printed_steps(mean[1], accepted, drafted, rates)
    if steps is None:
        return BadRecord(f"numbers that no interval has: {text[:_MOST_SHOWN]}")
    positions = [round(float(rate) * steps) for rate in rates]
    return AcceptanceRecord(
        engine="vllm",
        scope=Scope.LOG,
        requests=None,
        k=len(rates) or None,
        histogram=histogram_of_positions(steps, accepted, positions),
        steps=steps,
        steps_basis=basis,
        accepted=accepted,
        drafted=drafted,
    )
