import json
import random
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from outrider.records.adapters.vllm import VllmAdapter
from outrider.records.adapters.vllm_lines import batches, plain_body, record_of
from outrider.records.reading import AcceptanceRecord, InvalidRecord, Place
from outrider.records.segment_keys import segment_values
from outrider.records.sources.decoding import decoded
from outrider.records.sources.document import JsonDocument
from outrider.records.tabulate import rows_of, tabulate
from outrider.records.validation import validated

BODIES = Path(__file__).parents[1] / "cases" / "vllm" / "bodies.jsonl"


def captured() -> list[dict[str, Any]]:
    rows = [json.loads(line) for line in BODIES.read_text(encoding="utf-8").splitlines()]
    return [row.get("body", row) for row in rows]


def the_long_way(line: bytes) -> AcceptanceRecord | None:
    """What the adapter makes of the line, if it is valid."""
    [(_, reading)] = VllmAdapter().convert(JsonDocument(Place("a", 1), decoded(line)))
    if not isinstance(reading, AcceptanceRecord):
        return None
    try:
        return validated(reading)
    except InvalidRecord:
        return None


def vllm_line(line: bytes) -> AcceptanceRecord | None:
    """The record of a line that is read by the thousand, if it is."""
    body = plain_body(line)
    if body is None:
        return None
    found, left = batches([body], [1])
    assert len(found) + len(left) == 1
    return record_of(body) if found else None


def fields(record: AcceptanceRecord) -> dict[str, Any]:
    """The record's fields, lists and tuples alike."""
    found = msgspec.structs.asdict(record)
    for name, value in found.items():
        if isinstance(value, (list, tuple)):
            found[name] = list(value)
    found["tags"] = dict(record.tags)
    return found


def test_most_captured_answers_with_figures_are_read_in_one_go() -> None:
    lines = [json.dumps(body).encode() for body in captured()]
    with_figures = [line for line in lines if the_long_way(line) is not None]
    in_one_go = [line for line in lines if vllm_line(line) is not None]
    assert len(in_one_go) > 0.8 * len(with_figures) > 8


@pytest.mark.parametrize("body", captured(), ids=lambda body: str(body.get("id")))
def test_what_is_read_in_one_go_is_what_the_adapter_reads(body: dict[str, Any]) -> None:
    line = json.dumps(body).encode()
    record = vllm_line(line)
    if record is not None:
        expected = the_long_way(line)
        assert expected is not None
        assert fields(record) == fields(expected)


JUNK: tuple[Any, ...] = (
    None,
    True,
    -1,
    0,
    1,
    2.5,
    10**30,
    "",
    "stop",
    [],
    [0],
    [1, 2],
    {},
    {"a": 1},
)


def altered(value: Any, rng: random.Random) -> Any:
    """The JSON value with one part replaced, removed or changed by one."""
    if isinstance(value, dict) and value and rng.random() < 0.9:
        key = rng.choice([*value])
        changed = dict(value)
        if rng.random() < 0.1:
            del changed[key]
        else:
            changed[key] = altered(value[key], rng)
        return changed
    if isinstance(value, list) and value and rng.random() < 0.9:
        place = rng.randrange(len(value))
        return [*value[:place], altered(value[place], rng), *value[place + 1 :]]
    if isinstance(value, int) and rng.random() < 0.5:
        return value + rng.choice((-1, 1))
    return rng.choice(JUNK)


@given(st.randoms(use_true_random=False), st.integers(1, 3))
def test_an_altered_answer_is_read_alike_or_left_to_the_adapter(
    rng: random.Random, times: int
) -> None:
    body = rng.choice(captured())
    for _ in range(times):
        body = altered(body, rng)
    line = json.dumps(body).encode()
    record = vllm_line(line)
    if record is not None:
        expected = the_long_way(line)
        assert expected is not None
        assert fields(record) == fields(expected)


def test_the_sums_of_a_batch_are_those_of_its_records_one_by_one() -> None:
    lines = [json.dumps(body).encode() for body in captured()]
    plain = [(line, body) for line in lines if (body := plain_body(line)) is not None]
    found, left = batches([body for _, body in plain], [*range(len(plain))])
    assert found
    for batch in found:
        alone = [the_long_way(plain[number][0]) for number in batch.lines]
        records = [record for record in alone if record is not None]
        assert len(records) == len(alone)
        assert (rows_of(batch.numbers) == tabulate(records, batch.numbers.k)).all()
        for record, kind in zip(records, batch.kinds, strict=True):
            assert segment_values(record) == segment_values(batch.examples[kind])
    assert len(left) + sum(len(batch.lines) for batch in found) == len(plain)


@pytest.mark.parametrize("line", [b"", b"{", b"[" * 100_000, b'{"id": "\xff"}', b"null", b"[]"])
def test_what_is_no_answer_is_left_to_the_adapter(line: bytes) -> None:
    assert vllm_line(line) is None
