import json
from pathlib import Path

import pytest
from tests.report.acceptance.builders import collected, record, two_kinds

from outrider.errors import InvalidSetting
from outrider.report.acceptance.as_json import report_to_json
from outrider.report.acceptance.building import build_acceptance_report
from outrider.report.acceptance.document import AcceptanceReport
from outrider.report.acceptance.gate import run_gate


def report(*histograms: list[int], repeat: int = 1, kind: str = "a") -> AcceptanceReport:
    records = [record(h, kind=kind) for _ in range(repeat) for h in histograms]
    return build_acceptance_report(collected(records), sources=["a"], by=["kind"])


def stored(path: Path, baseline: AcceptanceReport) -> str:
    path.write_text(json.dumps(report_to_json(baseline)), encoding="utf-8")
    return str(path)


SPREAD = ([8, 2], [7, 3], [6, 4], [5, 5], [4, 6])
"""M = 1.4 with a wide interval."""


@pytest.mark.parametrize(
    ("threshold", "outcome"), [("1.2", "pass"), ("1.45", "pass"), ("1.9", "fail")]
)
def test_a_number_fails_only_what_lies_below_it_beyond_its_interval(
    threshold: str, outcome: str
) -> None:
    [result] = run_gate(report(*SPREAD), threshold)
    assert result.outcome == outcome


def test_without_an_interval_the_values_alone_decide_and_that_is_said() -> None:
    [result] = run_gate(report([6, 4]), "1.41")
    assert result.outcome == "fail"
    assert "no interval" in result.line


def test_the_same_data_never_fall_short_of_themselves(tmp_path: Path) -> None:
    current = build_acceptance_report(two_kinds(), sources=["a"])
    baseline = stored(tmp_path / "baseline.json", current)
    assert {result.outcome for result in run_gate(current, baseline)} == {"pass"}


def test_a_clear_drop_against_a_baseline_fails(tmp_path: Path) -> None:
    baseline = stored(tmp_path / "baseline.json", report([1, 9], [2, 8], [1, 9], repeat=4))
    results = run_gate(report([8, 2], [9, 1], [8, 2], repeat=4), baseline)
    assert {result.outcome for result in results} == {"fail"}


def test_the_baselines_own_interval_counts(tmp_path: Path) -> None:
    # 1.52 against 1.40: told apart from the number, not from a baseline that is as uncertain.
    certain = report([58, 42], [59, 41], [58, 42], [59, 41], [58, 42])
    baseline = stored(tmp_path / "baseline.json", report([2, 8], [3, 7], [8, 2], [5, 5], [6, 4]))
    assert run_gate(certain, "1.52")[0].outcome == "fail"
    assert run_gate(certain, baseline)[0].outcome == "pass"


def test_a_segment_that_is_gone_is_unknown_and_told(tmp_path: Path) -> None:
    baseline = stored(tmp_path / "baseline.json", report(*SPREAD, kind="b"))
    whole, segment = run_gate(report(*SPREAD, kind="a"), baseline)
    assert whole.outcome == "pass"
    assert segment.outcome == "unknown"
    assert "not in this report" in segment.line


def test_a_baseline_with_nothing_in_common_is_refused(tmp_path: Path) -> None:
    baseline = stored(tmp_path / "baseline.json", report([4, 3, 3]))
    with pytest.raises(InvalidSetting, match="no segment of this report"):
        run_gate(report(*SPREAD), baseline)


@pytest.mark.parametrize("content", ["", "[]", "{}", '{"schema": "outrider.report/2"}', "1.4e"])
def test_what_is_neither_number_nor_report_is_refused(content: str, tmp_path: Path) -> None:
    path = tmp_path / "baseline.json"
    path.write_text(content, encoding="utf-8")
    with pytest.raises(InvalidSetting, match="not a report"):
        run_gate(report(*SPREAD), str(path))


@pytest.mark.parametrize("text", ["nan", "inf", "missing.json"])
def test_a_threshold_that_is_none_is_refused(text: str) -> None:
    with pytest.raises(InvalidSetting):
        run_gate(report(*SPREAD), text)
