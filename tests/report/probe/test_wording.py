"""What a rung tells, in words: absent, zero and unknown stay apart, and so do the bases."""

from outrider.records.probe.outcome import DoesNot, Tells, Unknown
from outrider.records.reading import AcceptanceRecord
from outrider.report.probe.wording import outcome_name, sentences


def test_each_basis_is_named_and_what_is_not_told_as_well() -> None:
    record = AcceptanceRecord(
        engine="e", steps=135, steps_basis="estimated", accepted=65, drafted=None
    )
    what, covers, here = sentences("request_other", Tells((record,), None))
    assert what == ("K unknown; steps estimated from tokens, accepted counted, drafted not told")
    assert covers == "Each answer by itself"
    assert here == "Here about 135 steps, 65 of an unknown number of drafted tokens accepted"


def test_nominal_counts_are_called_so() -> None:
    record = AcceptanceRecord(
        engine="e", k=5, histogram=[1, 1, 0, 0, 0, 0], steps=2, accepted=1, drafted=10,
        drafted_basis="nominal",
    )  # fmt: skip
    what, *_ = sentences("request_other", Tells((record,), 5, streamed=True))
    assert what == "K = 5; histogram; steps and accepted counted, drafted nominal (K × steps)"


def test_one_scrape_is_cumulative_and_two_are_an_interval() -> None:
    told = Tells((), 3, "nothing was drafted since the server started")
    zero, since = sentences("counters_since_start", told)
    assert zero == "K = 3; nothing was drafted since the server started"
    assert since.startswith("Cumulative")
    assert sentences("counters_between", told)[1].startswith("An interval")


def test_a_stream_without_the_figures_is_told_with_the_reason() -> None:
    record = AcceptanceRecord(engine="e", steps=1, accepted=1)
    told = Tells((record,), None, streamed=False, stream_reason="no usage")
    assert "not in streams (no usage)" in sentences("request_summary", told)[1]


def test_reasons_begin_as_sentences_and_names_keep_their_spelling() -> None:
    assert sentences("server_log", DoesNot("speculation is off")) == ("Speculation is off",)
    assert sentences("server_log", DoesNot("vLLM cannot")) == ("vLLM cannot",)
    assert sentences("request_other", DoesNot("metrics.x has them")) == ("metrics.x has them",)
    assert outcome_name(DoesNot("x")) != outcome_name(Unknown("x"))
