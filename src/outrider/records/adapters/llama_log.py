"""The log of llama-server: one line of acceptance for every answer (since June 2026)."""

import re
from collections.abc import Iterator

from outrider.records.adapters.base import PlacedReading
from outrider.records.adapters.positions import histogram_of_positions
from outrider.records.adapters.printed_steps import printed_steps
from outrider.records.reading import AcceptanceRecord, BadRecord, NoMetrics, Place, Reading
from outrider.records.sources.document import Document, TextDocument

_MARK = "draft acceptance"
# Wording of llama.cpp's pull request 24536; the line ended after `generated)` before.
_LINE = re.compile(
    r"draft acceptance (?:rate )?= +[\d.]+ \( *(?P<accepted>\d{1,15}) accepted / *"
    r"(?P<drafted>\d{1,15}) generated\)"
    r"(?:, mean acceptance length = *(?P<mean>\d{1,3}\.\d+),"
    r" acceptance rate per position = \((?P<rates>[01]\.\d+(?:, [01]\.\d+)*)\))?"
)
_SERVER_LINE = re.compile(
    r"\b(?:slot +(?:print_timing|release|launch_slot_|update_slots|get_availabl)|srv +update_slots)"
)

_WITHOUT_STEPS = NoMetrics("this llama-server logs drafted and accepted tokens, but not the steps")
_NO_LINES = NoMetrics("the log has no draft acceptance lines: nothing was drafted")


class LlamaLogAdapter:
    """Reads `draft acceptance` lines, whatever else the log holds."""

    name = "llama-log"

    def recognises(self, document: Document) -> bool:
        """Say yes to text with such a line, or with lines of llama-server's slots."""
        return isinstance(document, TextDocument) and (
            _LINE.search(document.head) is not None
            or _SERVER_LINE.search(document.head) is not None
        )

    def convert(self, document: Document) -> Iterator[PlacedReading]:
        """Yield a reading for every answer that the log tells of."""
        if not isinstance(document, TextDocument):
            yield document.place, BadRecord("it is not the text of a log")
            return
        told = False
        for number, line in document.lines():
            if _MARK in line:
                told = True
                yield Place(document.place.source, number), _answer(line)
        if not told:
            yield document.place, _NO_LINES


def _answer(line: str) -> Reading:
    told = _LINE.search(line)
    if told is None or (told["mean"] is None and "mean acceptance" in line):
        return BadRecord(f"a cut or altered line: {line.strip()[:160]}")
    if told["mean"] is None:
        return _WITHOUT_STEPS
    accepted, drafted = int(told["accepted"]), int(told["drafted"])
    rates = told["rates"].split(", ")
    steps, basis = printed_steps(told["mean"], accepted, drafted, rates)
    if steps is None:
        return BadRecord(f"numbers that no answer has: {line.strip()[:160]}")
    positions = [round(float(rate) * steps) for rate in rates]
    return AcceptanceRecord(
        engine="llama.cpp",
        k=len(rates),
        histogram=histogram_of_positions(steps, accepted, positions),
        steps=steps,
        steps_basis=basis,
        accepted=accepted,
        drafted=drafted,
    )
