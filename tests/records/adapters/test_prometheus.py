from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from outrider.records.adapters.prometheus import PrometheusAdapter
from outrider.records.reading import AcceptanceRecord, BadRecord, NoMetrics, Place, Scope
from outrider.records.sources.document import FileDocument, JsonDocument, TextDocument

CASES = Path(__file__).parents[1] / "cases"
AFTER = (CASES / "prometheus" / "vllm-0.32-ngram-after.prom").read_text()
ADAPTER = PrometheusAdapter()


def document(text: str) -> TextDocument:
    return TextDocument(
        Place("metrics.prom"), text[: 64 << 10], lambda: enumerate(text.split("\n"), 1)
    )


def test_a_scrape_is_one_record_of_the_server() -> None:
    ((place, record),) = ADAPTER.convert(document(AFTER))
    assert place == Place("metrics.prom")
    assert isinstance(record, AcceptanceRecord)
    assert (record.engine, record.scope, record.steps) == ("vllm", Scope.SERVER, 3325)


def test_a_server_without_speculation_says_so() -> None:
    text = (CASES / "prometheus" / "vllm-0.32-no-speculation.prom").read_text()
    assert ADAPTER.recognises(document(text))
    ((_, reading),) = ADAPTER.convert(document(text))
    assert isinstance(reading, NoMetrics)
    assert "speculation is off" in reading.reason


def test_a_cut_line_is_listed_with_its_place() -> None:
    cut = AFTER[: AFTER.index("668.0") - 3]
    (bad_place, bad), (_, record) = ADAPTER.convert(document(cut))
    assert bad_place == Place("metrics.prom", cut.count("\n") + 1)
    assert isinstance(bad, BadRecord)
    assert isinstance(record, AcceptanceRecord)
    assert (record.steps, record.accepted, record.histogram) == (3325, 2705, None)


def test_it_recognises_scrapes_and_nothing_else() -> None:
    assert ADAPTER.recognises(document(AFTER))
    assert ADAPTER.recognises(document('vllm:spec_decode_num_drafts{engine="0"} 3\n'))
    assert ADAPTER.recognises(document('ray_vllm_spec_decode_num_drafts_total{engine="0"} 3\n'))
    for case in ("vllm-0.32-ngram.log", "llama-server-24536.log"):
        assert not ADAPTER.recognises(document((CASES / "logs" / case).read_text()))
    assert not ADAPTER.recognises(document("see `vllm:spec_decode_num_drafts_total`\n# TYPE it"))
    assert not ADAPTER.recognises(JsonDocument(Place("x"), {"a": AFTER}))
    assert not ADAPTER.recognises(FileDocument(Place("x"), Path("x"), b"# TYPE a counter\n"))


@given(
    st.text()
    | st.builds(
        lambda start, new, end: AFTER[:start] + new + AFTER[end:],
        st.integers(0, 6000),
        st.text(max_size=9),
        st.integers(0, 6000),
    )
)
def test_no_text_raises(text: str) -> None:
    ADAPTER.recognises(document(text))
    assert list(ADAPTER.convert(document(text)))
    assert list(ADAPTER.convert(JsonDocument(Place("x"), text)))
