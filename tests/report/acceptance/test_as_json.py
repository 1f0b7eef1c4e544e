import json
from io import StringIO

import pytest
from rich.console import Console
from tests.report.acceptance.builders import collected, record, two_kinds

from outrider.records.cadence import cadence_of
from outrider.records.reading import AcceptanceRecord, NoMetrics
from outrider.report.acceptance.as_json import report_to_json, write_json
from outrider.report.acceptance.building import build_acceptance_report


def test_the_documented_fields_have_the_documented_values() -> None:
    typed = AcceptanceRecord(engine="typed", k=3, histogram=[39, 1, 0, 3], drafted=129)
    content = report_to_json(
        build_acceptance_report(collected([typed, NoMetrics("n > 1")]), sources=["a"])
    )
    assert content["schema"] == "outrider.report/1"
    [segment] = content["segments"]
    expected = {
        "k": 3,
        "requests": 1,
        "steps": 43,
        "drafted": 129,
        "accepted": 10,
        "histogram": [39, 1, 0, 3],
        "wasted": 119,
        "survival_estimator": "product_limit",
        "coverage": None,
        "best_k": None,
        "mean_acceptance_length_ci": None,
        "survival_ci": [None, None, None],
    }
    assert {name: segment[name] for name in expected} == expected
    assert segment["mean_acceptance_length"] == pytest.approx(1.2326, abs=5e-5)
    assert segment["draft_acceptance_rate"] == pytest.approx(10 / 129)
    assert segment["survival"] == pytest.approx([4 / 43, 3 / 43, 3 / 43])
    assert segment["conditional_survival"] == pytest.approx([4 / 43, 3 / 4, 1])
    assert segment["marginal"] == segment["survival"]
    assert segment["immediate_failure_rate"] == pytest.approx(39 / 43)
    assert segment["full_draft_rate"] == pytest.approx(3 / 43)
    assert content["pooled"]["steps"] == 43
    assert content["pooled_refused"] is None
    assert content["records"] == {
        "read": 2,
        "used": 1,
        "no_metrics": {"n > 1": 1},
        "bad_count": 0,
        "bad": [],
        "verdict_withheld": False,
    }


def test_intervals_are_pairs_around_their_value() -> None:
    records = [record([number, 3, 1]) for number in range(1, 12)]
    content = report_to_json(build_acceptance_report(collected(records), sources=["a"]))
    [segment] = content["segments"]
    low, high = segment["mean_acceptance_length_ci"]
    assert low < segment["mean_acceptance_length"] < high


def test_the_cadence_stands_beside_the_tokens_per_chunk() -> None:
    streamed = [record([4, 2, 1], cadence=cadence_of([gaps])) for gaps in ([1, 3], [10, 10, 40])]
    content = report_to_json(build_acceptance_report(collected(streamed), sources=["a"]))
    [segment] = content["segments"]
    assert (segment["gaps"], segment["gap_answers"]) == (5, 2)
    assert segment["mean_gap_ms"] == pytest.approx(64 / 5)
    # Mean 2, deviation 1; mean 20, deviation sqrt(200).
    assert segment["gap_cv"] == pytest.approx((1 / 2 + 200**0.5 / 20) / 2)
    assert segment["longest_gap_ms"] == 40
    assert segment["gap_cv_ci"] is segment["mean_gap_ms_ci"] is None
    assert segment["gap_cv_reason"]


def test_an_unknown_cadence_is_null_with_its_reason() -> None:
    content = report_to_json(build_acceptance_report(collected([record([4, 2])]), sources=["a"]))
    [segment] = content["segments"]
    for name in ("gaps", "gap_answers", "mean_gap_ms", "gap_cv", "longest_gap_ms"):
        assert segment[name] is None, name
    assert "when the events of a stream arrived" in segment["gap_cv_reason"]


def test_unknown_is_null_and_never_zero() -> None:
    llama = AcceptanceRecord(
        engine="llama.cpp", steps=135, steps_basis="estimated", accepted=65, drafted=None
    )
    content = report_to_json(build_acceptance_report(collected([llama]), sources=["a"]))
    [segment] = content["segments"]
    for name in ("k", "drafted", "histogram", "draft_acceptance_rate", "wasted", "full_draft_rate"):
        assert segment[name] is None, name
    assert segment["steps_estimated"] is True


def test_what_is_written_is_valid_json_even_to_a_narrow_terminal() -> None:
    report = build_acceptance_report(two_kinds(), sources=["a"])
    written = StringIO()
    write_json(report, Console(file=written, width=40, force_terminal=True))
    assert json.loads(written.getvalue()) == report_to_json(report)
