import json
from pathlib import Path
from typing import Any, Protocol

import pytest
from tests.cli.running import Result, Run

from outrider.records.evidence_reader import read_evidence
from outrider.records.request import RequestRecord


class Finished(Protocol):
    result: Result
    evidence: Path


@pytest.fixture
def document(run: Run, finished: Finished) -> dict[str, Any]:
    """What `outrider report --format json` writes."""
    result = run("report", finished.evidence, "--format", "json")
    assert result.exit_code == 0
    parsed: dict[str, Any] = json.loads(result.out)["run"]
    return parsed


def row(text: str, heading: str, segment: str, arm: str) -> list[str]:
    """The cells of one row of a printed table; cells that hold two figures are several."""
    lines = iter(text.splitlines())
    for wanted in (heading, f"  {segment}", f"   {arm} "):
        line = next(line for line in lines if line.rstrip() == wanted or line.startswith(wanted))
    return line.removeprefix(f"   {arm}").split()


def measured(finished: Finished, arm: str) -> list[RequestRecord]:
    return [each for each in read_evidence(finished.evidence).measured if each.arm == arm]


@pytest.mark.parametrize("arm", ["ngram K=1", "ngram K=2"])
@pytest.mark.parametrize("segment", ["overall", "copy"])
def test_json_holds_the_figures_that_are_printed(
    arm: str, segment: str, finished: Finished, document: dict[str, Any]
) -> None:
    out = finished.result.out
    [found] = [each for each in document["comparison"]["segments"] if each["segment"] == segment]
    [summary] = [each for each in found["summaries"] if each["arm"] == arm]
    requests, steps, coverage, drafted, accepted, *_ = row(out, "Acceptance", segment, arm)
    assert int(requests) == summary["requests"]
    assert int(steps) == summary["verification_steps"]
    assert coverage == f"{100 * summary['coverage']['value']:.1f}"
    assert (int(drafted), int(accepted)) == (summary["drafted"], summary["accepted"])
    tokens, speed, *_ = row(out, "Speed of decoding", segment, arm)
    assert int(tokens) == summary["output_tokens"]
    assert speed == f"{summary['tokens_per_s']['value']:,.1f}"
    histogram = row(out, "Draft positions", segment, arm)
    assert histogram == ["steps", "H_j", *map(str, summary["histogram"])]


@pytest.mark.parametrize("arm", ["none", "ngram K=1", "ngram K=2"])
def test_figures_are_those_of_the_measured_requests(
    arm: str, finished: Finished, document: dict[str, Any]
) -> None:
    requests = measured(finished, arm)
    steps = [step for request in requests for step in request.steps]
    overall = document["comparison"]["segments"][0]
    [summary] = [each for each in overall["summaries"] if each["arm"] == arm]
    assert summary["requests"] == len(requests) == 12
    assert summary["decode_steps"] == len(steps)
    assert summary["drafted"] == sum(step.drafted for step in steps)
    assert summary["accepted"] == sum(step.accepted for step in steps)
    time_s = sum(step.step_s for step in steps)
    tokens = sum(step.emitted for step in steps)
    assert summary["tokens_per_s"]["value"] == pytest.approx(tokens / time_s)


def test_the_speed_up_is_that_of_the_measured_times(
    finished: Finished, document: dict[str, Any]
) -> None:
    def per_token_s(arm: str) -> float:
        requests = measured(finished, arm)
        return sum(r.decode_s for r in requests) / sum(r.decode_tokens for r in requests)

    for pair in document["comparison"]["segments"][0]["against_baseline"]:
        expected = per_token_s("none") / per_token_s(pair["arm"])
        assert pair["speed_up"]["value"] == pytest.approx(expected)


def test_the_same_file_gives_the_same_report(run: Run, finished: Finished) -> None:
    first, second = (run("report", finished.evidence, "--format", "json") for _ in range(2))
    assert first.out == second.out


def test_a_report_leaves_the_file_as_it_is(run: Run, finished: Finished) -> None:
    before = finished.evidence.read_bytes()
    run("report", finished.evidence)
    assert finished.evidence.read_bytes() == before
    assert [each.name for each in finished.evidence.parent.iterdir()] == ["run.duckdb"]
