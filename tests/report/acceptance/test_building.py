import pytest
from tests.report.acceptance.builders import collected, record, two_kinds

from outrider.acceptance.step_cost import parse_step_cost
from outrider.records.reading import BadRecord, NoMetrics, Scope
from outrider.report.acceptance.building import build_acceptance_report
from outrider.report.acceptance.document import AcceptanceReport


def build(collection: object, **options: object) -> AcceptanceReport:
    return build_acceptance_report(collection, sources=["a"], **options)  # type: ignore[arg-type]


def test_a_mixture_behind_one_mean_comes_out_by_itself() -> None:
    report = build(two_kinds())
    assert report.split is not None
    assert report.split.key == "kind"
    by_kind = {
        segment.values["kind"]: segment.figures.mean_acceptance_length.value
        for segment in report.segments
    }
    assert by_kind == {"copy": 5.0, "write": 1.0}
    [whole] = report.whole
    assert whole.figures.histogram == (300, 0, 0, 0, 300)
    assert "copy" in report.verdict
    assert "write" in report.verdict


def test_a_key_known_before_the_answer_goes_before_one_that_explains_more() -> None:
    records = [
        # The kind tells much, the length of the output all.
        record([0, 50] if number % 8 else [50, 0], kind="copy", completion_tokens=300)
        if number % 2
        else record([50, 0], kind="write", completion_tokens=20)
        for number in range(40)
    ]
    records += [record([50, 0], kind="copy", completion_tokens=20) for _ in range(4)]
    report = build(collected(records))
    assert report.split is not None
    assert report.split.key == "kind"
    assert report.split.tried[0].key == "output_length"
    assert "known before the answer" in report.split.text


def test_records_that_are_all_alike_are_not_split() -> None:
    records = [record([5, 3, 2], kind="ab"[number % 2]) for number in range(20)]
    report = build(collected(records))
    assert report.split is not None
    assert report.split.key is None
    assert len(report.segments) == 1
    assert report.whole == ()


def test_segments_asked_for_are_made_and_no_others() -> None:
    report = build(two_kinds(language="en"), by=["language"])
    assert report.split is None
    assert [segment.values["language"] for segment in report.segments] == ["en"]


def test_pooled_is_the_sum_where_all_may_be_added() -> None:
    report = build(two_kinds())
    assert report.pooled_refused is None
    assert report.pooled is not None
    assert report.pooled.figures.steps == 600


def test_different_k_are_reported_apart_and_never_pooled() -> None:
    report = build(collected([record([3, 1]), record([2, 1, 1])]))
    assert [segment.figures.k for segment in report.segments] == [1, 2]
    assert report.pooled is None
    assert report.pooled_refused is not None


@pytest.mark.parametrize(("bad", "withheld"), [(5, False), (6, True)])
def test_a_verdict_is_withheld_when_more_than_5_percent_were_bad(bad: int, withheld: bool) -> None:
    readings = [record([3, 1])] * (100 - bad) + [BadRecord("cut short")] * bad
    report = build(collected(readings))
    assert report.records.verdict_withheld is withheld
    assert report.verdict.startswith("No verdict") is withheld
    assert len(report.records.bad) == bad
    assert report.records.bad[0].line == 100 - bad + 1


def test_only_the_first_20_bad_records_are_listed_and_all_are_counted() -> None:
    report = build(collected([record([3, 1])] * 900 + [BadRecord("cut")] * 30))
    assert len(report.records.bad) == 20
    assert report.records.bad_count == 30


def test_reasons_without_metrics_are_counted_by_reason() -> None:
    report = build(collected([NoMetrics("n > 1"), NoMetrics("n > 1"), NoMetrics("stop string")]))
    assert report.records.no_metrics == {"n > 1": 2, "stop string": 1}
    assert report.segments == ()
    assert "Nothing" in report.verdict


def test_the_server_and_the_answers_are_never_added_and_their_difference_is_told() -> None:
    report = build(collected([record([6, 2]), record([10, 4], scope=Scope.INTERVAL)]))
    assert report.pooled is None
    assert any("14 steps" in note and "8" in note for note in report.notes)


def test_the_best_k_is_in_the_verdict_when_the_step_cost_is_known() -> None:
    records = [record([10, 30, 5, 5]) for _ in range(10)]
    report = build(collected(records), step_cost=parse_step_cost("1,0.1"), step_cost_text="1,0.1")
    choice = report.segments[0].draft_length
    assert choice is not None
    assert f"K = {choice.best_k} is best" in report.verdict


def test_no_step_cost_is_told_apart_from_nothing_to_say() -> None:
    [segment] = build(collected([record([3, 1])])).segments
    assert segment.draft_length is None
    assert "--step-cost" in (segment.draft_length_reason or "")


def test_the_same_collection_gives_the_same_intervals_whatever_else_is_in_it() -> None:
    alone = build(two_kinds(), by=["kind"]).segments[0]
    again = build(two_kinds(), by=["kind"]).segments[0]
    assert alone == again
