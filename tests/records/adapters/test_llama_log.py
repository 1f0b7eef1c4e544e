from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from outrider.records.adapters.llama_log import LlamaLogAdapter
from outrider.records.reading import AcceptanceRecord, BadRecord, NoMetrics, Place, Scope
from outrider.records.sources.document import TextDocument
from outrider.records.validation import validated

CASES = Path(__file__).parents[1] / "cases" / "logs"
LOG = (CASES / "llama-server-24536.log").read_text()
ADAPTER = LlamaLogAdapter()


def document(text: str) -> TextDocument:
    return TextDocument(Place("log"), text[: 64 << 10], lambda: enumerate(text.split("\n"), 1))


def test_an_answer_is_a_record_with_the_87_drafts_that_the_statistics_line_names() -> None:
    ((place, record),) = ADAPTER.convert(document(LOG))
    assert place == Place("log", 5)
    assert isinstance(record, AcceptanceRecord)
    assert validated(record).histogram == (17, 15, 13, 42)
    assert (record.steps, record.steps_basis, record.k) == (87, "counted", 3)
    assert (record.accepted, record.drafted, record.scope) == (167, 259, Scope.REQUEST)


def test_the_older_line_tells_no_steps() -> None:
    older = "draft acceptance rate = 0.56556 ( 1376 accepted /  2433 generated)"
    ((_, reading),) = ADAPTER.convert(document(older))
    assert isinstance(reading, NoMetrics)


def test_a_cut_line_is_bad() -> None:
    cut = LOG[: LOG.index("acceptance rate per") + 9]
    ((_, reading),) = ADAPTER.convert(document(cut))
    assert isinstance(reading, BadRecord)


def test_it_recognises_the_logs_of_llama_server_only() -> None:
    assert ADAPTER.recognises(document(LOG))
    assert not ADAPTER.recognises(document((CASES / "vllm-0.32-ngram.log").read_text()))


@given(
    st.text()
    | st.builds(
        lambda start, new, end: LOG[:start] + new + LOG[end:],
        st.integers(0, 1200),
        st.text(max_size=9),
        st.integers(0, 1200),
    )
)
def test_no_text_raises(text: str) -> None:
    ADAPTER.recognises(document(text))
    assert list(ADAPTER.convert(document(text)))
