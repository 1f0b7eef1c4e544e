"""The page beside that of a vLLM server: what reads the one reads the other."""

from collections.abc import Iterable
from pathlib import Path

import pytest
from prometheus_client.metrics_core import Metric
from prometheus_client.openmetrics.parser import (
    text_string_to_metric_families as openmetrics_families,
)
from prometheus_client.parser import text_string_to_metric_families
from tests.engine.loops import request
from tests.server.metrics.serving import STARTED, Served, metrics_of

from outrider.server.metrics.engine_load import EngineLoad
from outrider.server.metrics.serving_metrics import ServingMetrics

VLLM = (Path(__file__).parent / "cases" / "vllm-0.32-ngram.prom").read_text()


def served_page(accept: str = "") -> tuple[str, str]:
    served = Served(k=3)
    served.add(request([0] * 5, 20))
    served.finish()
    page, content_type = served.metrics.render(accept)
    return page.decode(), content_type


def by_name(families: Iterable[Metric]) -> dict[str, Metric]:
    return {family.name: family for family in families}


OURS = by_name(text_string_to_metric_families(served_page()[0]))
THEIRS = by_name(text_string_to_metric_families(VLLM))


def test_every_metric_under_vllms_prefix_is_one_of_vllms() -> None:
    ours = {name for name in OURS if name.startswith("vllm:")}
    assert ours == set(THEIRS)
    assert len(ours) > 40


@pytest.mark.parametrize("name", sorted(THEIRS))
def test_a_metric_of_vllms_has_its_type_help_labels_and_buckets(name: str) -> None:
    ours, theirs = OURS[name], THEIRS[name]
    assert (ours.type, ours.documentation) == (theirs.type, theirs.documentation)
    assert {sample.name for sample in ours.samples} == {sample.name for sample in theirs.samples}
    assert {frozenset(s.labels) for s in ours.samples} == {
        frozenset(s.labels) for s in theirs.samples
    }
    for label in ("le", "position"):
        assert [s.labels.get(label) for s in ours.samples if label in s.labels] == [
            s.labels.get(label) for s in theirs.samples if label in s.labels
        ]


def test_reasons_to_end_are_vllms() -> None:
    def reasons(families: dict[str, Metric]) -> set[str]:
        return {s.labels["finished_reason"] for s in families["vllm:request_success"].samples}

    assert reasons(OURS) == reasons(THEIRS) - {"repetition"}


def test_each_of_our_own_metrics_says_what_it_is_over() -> None:
    own = [f for name, f in OURS.items() if name.startswith("outrider:") and "created" not in name]
    assert len(own) == 10
    for family in own:
        assert any(
            word in family.documentation for word in ("Denominator", "Over", "all decode steps")
        ), family.name


def test_counters_tell_when_they_began() -> None:
    labels = {"engine": "0", "model_name": "m"}
    began = metrics_of(k=1).registry.get_sample_value("vllm:generation_tokens_created", labels)
    assert began == STARTED


def test_openmetrics_comes_to_who_asks_and_says_the_same() -> None:
    page, content_type = served_page(
        "application/openmetrics-text;version=1.0.0;q=0.6,text/plain;version=0.0.4;q=0.5,*/*;q=0.1"
    )
    assert content_type == "application/openmetrics-text; version=1.0.0; charset=utf-8"
    found = by_name(openmetrics_families(page))  # type: ignore[no-untyped-call]

    def values(families: dict[str, Metric]) -> dict[tuple[str, str], float]:
        return {
            (sample.name, str(sorted(sample.labels.items()))): sample.value
            for family in families.values()
            for sample in family.samples
            if sample.name.startswith(("vllm:", "outrider:")) and "created" not in sample.name
        }

    assert values(found) == values(OURS)
    assert page.endswith("# EOF\n")


@pytest.mark.parametrize("accept", ["", "*/*", "text/plain; version=9.9.9", "text/html", ",;=;,"])
def test_anyone_else_gets_the_text_format(accept: str) -> None:
    page, content_type = served_page(accept)
    assert content_type == "text/plain; version=0.0.4; charset=utf-8"
    assert "# EOF" not in page


def test_an_odd_version_of_openmetrics_is_answered_with_the_one_there_is() -> None:
    for accept in ("application/openmetrics-text; version=x", "APPLICATION/OPENMETRICS-TEXT;;;"):
        assert served_page(accept)[1].startswith("application/openmetrics-text; version=1.0.0")


def test_a_models_name_is_escaped() -> None:
    name = 'a"b\\c\nd'
    metrics = ServingMetrics(model_name=name, k=1, load=EngineLoad, clock=lambda: 0.0)
    families = by_name(text_string_to_metric_families(metrics.render()[0].decode()))
    (sample,) = families["vllm:num_requests_running"].samples
    assert sample.labels["model_name"] == name
