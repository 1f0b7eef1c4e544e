"""An answer says to a probe what it says to a report."""

import json
from pathlib import Path
from typing import Any

import httpx2
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.records.probe.playing import CASES, DETAILED, DETAILED_STREAM, PER_CHOICE, as_stream

from outrider.records.adapters.registry import ADAPTERS
from outrider.records.probe.answers import read_answer
from outrider.records.reading import AcceptanceRecord, BadRecord, NoMetrics
from outrider.records.sources.reader import read
from outrider.records.validation import validated

HTTP = httpx2.Client()


@pytest.mark.parametrize(
    "text",
    [
        json.dumps(PER_CHOICE),
        json.dumps(PER_CHOICE, indent=2),
        json.dumps(DETAILED, indent=2),
        as_stream(DETAILED),
        DETAILED_STREAM,
        *(path.read_text("utf-8") for path in sorted((CASES / "vllm").glob("*.sse"))),
    ],
)
def test_it_reads_what_the_reader_of_reports_reads(text: str, tmp_path: Path) -> None:
    file = tmp_path / "answer"
    file.write_text(text, encoding="utf-8")
    expected: list[Any] = [r for _, r in read([str(file)], ADAPTERS, stdin=None, http=HTTP)]  # type: ignore[arg-type]
    _, found = read_answer(text.encode(), HTTP)
    if isinstance(found, AcceptanceRecord):
        assert found == validated(expected[0])
    else:
        assert found == expected[0]


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                [
                    "choices",
                    "metrics",
                    "speculative_decoding",
                    "timings",
                    "sglext",
                    "meta_info",
                    "usage",
                ]
            ),
            inner,
            max_size=4,
        )
    ),
    max_leaves=12,
)


@settings(max_examples=200, deadline=None)
@given(json_values.map(lambda value: json.dumps(value).encode()) | st.binary(max_size=60))
def test_whatever_comes_back_is_a_reading(body: bytes) -> None:
    _, reading = read_answer(body, HTTP)
    assert isinstance(reading, (AcceptanceRecord, NoMetrics, BadRecord))
