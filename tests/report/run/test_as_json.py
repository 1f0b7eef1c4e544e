import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from outrider.records.evidence import Evidence
from outrider.report.run.as_json import document_to_json
from outrider.report.run.document import ReportDocument, build_document

MakeEvidence = Callable[..., Evidence]


@pytest.fixture(scope="module")
def document(make_evidence: MakeEvidence) -> ReportDocument:
    return build_document(make_evidence())


def objects(value: Any) -> Iterator[dict[str, Any]]:
    if isinstance(value, dict):
        yield value
        value = list(value.values())
    if isinstance(value, list):
        for item in value:
            yield from objects(item)


def test_the_schema_is_named_first(document: ReportDocument) -> None:
    content = document_to_json(document)

    assert next(iter(content.items())) == ("schema", "outrider.run/1")


def test_the_content_is_json(document: ReportDocument) -> None:
    content = document_to_json(document)

    assert json.loads(json.dumps(content, allow_nan=False)) == content


def test_figures_are_not_rounded(document: ReportDocument) -> None:
    content = document_to_json(document)

    speed_up = document.comparison.segments[0].against_baseline[1].speed_up
    assert speed_up.interval is not None
    assert content["comparison"]["segments"][0]["against_baseline"][1]["speed_up"] == {
        "value": speed_up.value,
        "interval": {
            "low": speed_up.interval.low,
            "high": speed_up.interval.high,
            "level": 0.95,
            "clusters": 10,
        },
        "reason": None,
    }


def test_every_estimate_has_a_value_with_an_interval_or_the_reason_why_not(
    make_evidence: MakeEvidence,
) -> None:
    content = document_to_json(build_document(make_evidence(smoke=True, prompts_of_a_kind=1)))

    estimates = [found for found in objects(content) if {"value", "interval"} <= found.keys()]
    complete = [found for found in estimates if found["interval"] is not None]
    assert complete
    assert len(complete) < len(estimates)
    for estimate in estimates:
        if estimate["interval"] is None:
            assert estimate["reason"]
        else:
            assert estimate["reason"] is None
            assert set(estimate["interval"]) == {"low", "high", "level", "clusters"}


def test_what_the_run_was_and_what_to_do_are_in_it(document: ReportDocument) -> None:
    content = document_to_json(document)

    assert content["settings"]["arms"][1]["name"] == "ngram-k1"
    assert content["environments"][0]["started_at"] == "2026-01-31T12:00:00Z"
    assert content["findings"][0]["verdict"] == document.findings[0].verdict.value
    assert content["deployments"][0]["commands"]["deploy"].startswith("vllm serve")
    assert content["audit"]["identical_pairs"] == content["audit"]["pairs"] == 40
