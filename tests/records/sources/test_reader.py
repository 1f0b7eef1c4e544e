"""Names become readings: recognised, converted, and whatever is wrong listed with its place."""

import gzip
import hashlib
import io
import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import cast

import httpx2
import pytest

from outrider.errors import InvalidEvidence, OutriderError, UnreadableSource
from outrider.records.adapters.base import Adapter, PlacedReading
from outrider.records.reading import AcceptanceRecord, BadRecord, NoMetrics, Place, Reading
from outrider.records.sources.document import Document, JsonDocument, TextDocument
from outrider.records.sources.reader import read

RECORD = AcceptanceRecord(engine="x", steps=1, accepted=1)


@dataclass
class Fake:
    """Recognises objects that have its key, and answers with a reading for each."""

    name: str
    answer: Callable[[Document], Reading] = lambda document: RECORD
    asked: int = 0
    seen: list[Document] = field(default_factory=list)

    def recognises(self, document: Document) -> bool:
        self.asked += 1
        return isinstance(document, JsonDocument) and self.name in document.value

    def convert(self, document: Document) -> Iterator[PlacedReading]:
        self.seen.append(document)
        yield document.place, self.answer(document)


def readings(
    http: httpx2.Client, data: bytes, *adapters: Adapter, forced: Adapter | None = None
) -> list[PlacedReading]:
    found = [*read(["-"], adapters, forced=forced, stdin=io.BytesIO(data), http=http)]
    return cast("list[PlacedReading]", found)


def test_each_document_goes_to_the_adapter_that_recognises_it(http: httpx2.Client) -> None:
    a = Fake("a", lambda document: NoMetrics("it says nothing"))
    b = Fake("b")
    assert readings(http, b'{"a": 1}\n{"b": 2}\n{broken\n{"a": 3}\n', a, b) == [
        (Place("-", 1), NoMetrics("it says nothing")),
        (Place("-", 2), RECORD),
        (Place("-", 3), BadRecord("not JSON: object keys must be strings (byte 1)")),
        (Place("-", 4), NoMetrics("it says nothing")),
    ]


def test_the_adapter_that_fitted_last_is_asked_first(http: httpx2.Client) -> None:
    first, second = Fake("first"), Fake("second")
    readings(http, b'{"second": 1}\n' * 100, first, second)
    assert (first.asked, second.asked) == (1, 100)


def test_a_forced_adapter_reads_everything(http: httpx2.Client) -> None:
    other, forced = Fake("a"), Fake("b")
    assert len(readings(http, b'{"a": 1}\n{"c": 2}\n', other, forced=forced)) == 2
    assert (other.asked, forced.asked) == (0, 0)


def test_what_is_in_an_envelope_is_recognised(http: httpx2.Client) -> None:
    adapter = Fake("choices")
    line = {"request": {"n": 1}, "response": {"choices": []}, "tag": "t"}
    assert readings(http, json.dumps(line).encode(), adapter) == [(Place("-", 1), RECORD)]
    assert adapter.seen == [
        JsonDocument(Place("-", 1), {"choices": []}, tags={"n": 1, "tag": "t"}, request={"n": 1})
    ]


def test_what_no_adapter_recognises_is_bad(http: httpx2.Client) -> None:
    assert readings(http, b'{"a": 1}\n{"b": 2, "c": {}}\n[5]\n', Fake("a"), Fake("x")) == [
        (Place("-", 1), RECORD),
        (
            Place("-", 2),
            BadRecord("not recognised: an object with 'b', 'c'; docs/report.md lists what is read"),
        ),
        (
            Place("-", 3),
            BadRecord("not recognised: a list of 1; docs/report.md lists what is read"),
        ),
    ]


def test_what_comes_before_the_first_that_is_recognised_is_bad_too(http: httpx2.Client) -> None:
    found = readings(http, b'{"b": 1}\n{"b": 2}\n{"a": 3}\n', Fake("a"))
    assert [place.line for place, _ in found] == [1, 2, 3]
    assert [type(reading) for _, reading in found] == [BadRecord, BadRecord, AcceptanceRecord]


def test_a_file_of_another_kind_is_one_bad_record(http: httpx2.Client) -> None:
    ((place, reading),) = readings(http, b'{"prompt": "x"}\n' * 90, Fake("a"))
    assert place == Place("-", 1)
    assert isinstance(reading, BadRecord)
    assert reading.reason.startswith("90 records, none recognised; the first: not recognised: ")


def test_only_so_many_are_held_back_before_each_is_listed(http: httpx2.Client) -> None:
    found = readings(http, b'{"prompt": "x"}\n' * 1500, Fake("a"))
    assert len(found) == 1500


def test_text_that_no_adapter_recognises_is_quoted(http: httpx2.Client) -> None:
    ((_, reading),) = readings(http, b"# Notes\n\nof the day\n" + b"x" * 500, Fake("a"))
    assert isinstance(reading, BadRecord)
    assert "text that begins '# Notes of the day xxx" in reading.reason
    assert len(reading.reason) < 160


@pytest.mark.parametrize("body", [{"error": {"code": 400}}, {"object": "error", "code": 400}])
def test_an_error_in_place_of_an_answer_has_no_metrics(
    http: httpx2.Client, body: dict[str, object]
) -> None:
    assert readings(http, json.dumps(body).encode(), Fake("a")) == [
        (Place("-", 1), NoMetrics("an error in place of an answer"))
    ]


def test_an_adapter_that_raises_makes_a_bad_record(http: httpx2.Client) -> None:
    def fail(document: Document) -> Reading:
        raise KeyError("usage")

    assert readings(http, b'{"a": 1}\n{"b": 2}\n', Fake("a", fail), Fake("b")) == [
        (Place("-", 1), BadRecord("unexpected content (KeyError: 'usage')")),
        (Place("-", 2), RECORD),
    ]


@pytest.mark.parametrize("error", [InvalidEvidence("a", "b", "c"), KeyboardInterrupt()])
def test_what_a_user_must_know_passes_through(
    http: httpx2.Client, error: OutriderError | KeyboardInterrupt
) -> None:
    def fail(document: Document) -> Reading:
        raise error

    with pytest.raises(type(error)):
        readings(http, b'{"a": 1}\n', Fake("a", fail))


def test_a_stream_that_breaks_while_an_adapter_reads_is_told(http: httpx2.Client) -> None:
    class Log(Fake):
        def recognises(self, document: Document) -> bool:
            return isinstance(document, TextDocument)

        def convert(self, document: Document) -> Iterator[PlacedReading]:
            assert isinstance(document, TextDocument)
            for number, _ in document.lines():
                yield Place(document.place.source, number), RECORD

    marks = (hashlib.sha256(str(number).encode()).hexdigest() for number in range(20_000))
    text = "\n".join(marks).encode()
    found = readings(http, gzip.compress(text)[:-2000], Log("log"))
    assert len(found) > 10_000
    place, last = found[-1]
    assert place == Place("-")
    assert isinstance(last, BadRecord)
    assert last.reason.startswith("it breaks off: ")


def test_a_missing_source_is_refused_before_anything_is_read(
    http: httpx2.Client, tmp_path: Path
) -> None:
    names = ["-", str(tmp_path / "missing")]
    with pytest.raises(UnreadableSource, match="does not exist"):
        next(read(names, [Fake("a")], stdin=io.BytesIO(b'{"a": 1}'), http=http))


def test_sources_of_several_kinds_are_read_in_order(http: httpx2.Client, tmp_path: Path) -> None:
    (tmp_path / "one").write_text('{"a": 1}')
    (tmp_path / "two").write_bytes(b"\x7fELF" + bytes(range(256)))
    adapter = Fake("a")
    names = [str(tmp_path), '{"a": 1}', "-"]
    found = [*read(names, [adapter], stdin=io.BytesIO(b'{"a": 1}'), http=http)]
    assert [place.source for place, _ in found] == [
        str(tmp_path / "one"),
        str(tmp_path / "two"),
        '{"a": 1}',
        "-",
    ]
    assert [type(reading) for _, reading in found] == [
        AcceptanceRecord,
        BadRecord,
        AcceptanceRecord,
        AcceptanceRecord,
    ]
