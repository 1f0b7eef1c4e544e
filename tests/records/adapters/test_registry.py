import copy
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from outrider.errors import InvalidSetting
from outrider.records.adapters.registry import ADAPTERS, adapter
from outrider.records.collecting import Collector
from outrider.records.reading import AcceptanceRecord, BadRecord, NoMetrics, Place
from outrider.records.sources.document import JsonDocument, StreamFacts

PLACE = Place("answers.jsonl", 7)
CASES = Path(__file__).parents[1] / "cases"


def _payloads() -> list[tuple[str, str, Any]]:
    """Return every captured body: the adapter that it belongs to, its name and its value."""
    payloads = []
    for name in ("vllm/bodies", "vllm/streams", "other-engines"):
        for line in (CASES / f"{name}.jsonl").read_text("utf-8").splitlines():
            row = json.loads(line)
            payloads.append((row.get("adapter", "vllm"), row["case"], row["body"]))
    return payloads


PAYLOADS = _payloads()
READERS = [adapter(name) for name in sorted({name for name, _, _ in PAYLOADS})]


@pytest.mark.parametrize(
    ("owner", "body"), [pytest.param(who, body, id=f"{who}:{case}") for who, case, body in PAYLOADS]
)
def test_each_payload_is_claimed_by_its_own_adapter_alone(owner: str, body: object) -> None:
    document = JsonDocument(PLACE, body)
    assert [known.name for known in ADAPTERS if known.recognises(document)] == [owner]


def test_every_name_finds_its_adapter() -> None:
    names = [known.name for known in ADAPTERS]
    assert len(set(names)) == len(names)
    assert [adapter(name).name for name in names] == names


def test_an_unknown_name_is_answered_with_the_known_ones() -> None:
    with pytest.raises(InvalidSetting, match=r"use one of .*vllm-choice.*vllm, plain"):
        adapter("vlm")


JUNK = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-3, 3),
    st.sampled_from([2**53 + 1, 10**30, -(10**400), 10**400, 0.5, -1.0, 1e308]),
    st.floats(allow_nan=True, allow_infinity=True),
    st.text(max_size=4),
    st.just("٣"),
    st.lists(
        st.one_of(st.none(), st.integers(-1, 5), st.floats(), st.text(max_size=2)), max_size=5
    ),
    st.dictionaries(st.text("0129x", max_size=3), st.one_of(st.none(), st.integers()), max_size=3),
)


def _paths(value: Any, at: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    inner: list[tuple[Any, ...]] = [at] if at else []
    steps = value.items() if isinstance(value, dict) else enumerate(value)
    for step, below in steps:
        deeper = isinstance(below, (dict, list))
        inner.extend(_paths(below, (*at, step)) if deeper else [(*at, step)])
    return inner


@st.composite
def mutated(draw: st.DrawFn) -> Any:
    """A captured body with one to three of its values replaced by junk or taken away."""
    body = copy.deepcopy(draw(st.sampled_from(PAYLOADS))[2])
    for _ in range(draw(st.integers(1, 3))):
        paths = _paths(body)
        if not paths:
            return draw(JUNK)
        *before, last = draw(st.sampled_from(paths))
        place = body
        for step in before:
            place = place[step]
        if draw(st.booleans()):
            place[last] = draw(JUNK)
        else:
            del place[last]
    return body


STREAMS = st.one_of(
    st.none(),
    st.builds(StreamFacts, st.integers(0, 9), ended=st.booleans(), usage_seen=st.booleans()),
)


@given(mutated(), STREAMS)
def test_no_mutated_body_raises_anywhere_up_to_the_sums(
    body: object, stream: StreamFacts | None
) -> None:
    document = JsonDocument(PLACE, body, stream=stream)
    collector = Collector()
    for reader in READERS:
        assert reader.recognises(document) in (True, False)
        for place, reading in reader.convert(document):
            assert isinstance(reading, AcceptanceRecord | NoMetrics | BadRecord)
            collector.add(place, reading)
    collection = collector.finish()
    assert collection.read == (
        collection.used + collection.bad_count + collection.no_metrics.total()
    )


@given(
    st.recursive(
        JUNK,
        lambda inner: (
            st.lists(inner, max_size=3)
            | st.dictionaries(
                st.sampled_from(
                    [
                        "choices",
                        "metrics",
                        "speculative_decoding",
                        "sglext",
                        "meta_info",
                        "usage",
                        "spec_tokens_details",
                        "timings",
                        "histogram",
                        "text",
                        "object",
                        "error",
                    ]
                ),
                inner,
                max_size=4,
            )
        ),
        max_leaves=12,
    )
)
def test_no_junk_raises(value: object) -> None:
    document = JsonDocument(PLACE, value)
    collector = Collector()
    for reader in READERS:
        reader.recognises(document)
        for place, reading in reader.convert(document):
            collector.add(place, reading)
    collector.finish()
