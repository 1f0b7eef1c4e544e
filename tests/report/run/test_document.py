from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from outrider.advice.decision import Verdict
from outrider.records.divergence import Divergence
from outrider.records.evidence import Evidence
from outrider.records.evidence_reader import read_evidence
from outrider.records.evidence_writer import EvidenceWriter
from outrider.records.request import RequestRecord, StepRecord
from outrider.report.run.document import build_document

MakeEvidence = Callable[..., Evidence]


@pytest.fixture(scope="module")
def evidence(make_evidence: MakeEvidence) -> Evidence:
    return make_evidence()


def test_a_finished_run_is_complete(evidence: Evidence) -> None:
    document = build_document(evidence)

    assert document.complete
    assert document.finished_requests == document.planned_requests == 3 * 10 * 2
    assert [segment.segment for segment in document.comparison.segments] == [
        finding.segment for finding in document.findings
    ]


def test_an_interrupted_run_is_reported_as_far_as_it_went(evidence: Evidence) -> None:
    document = build_document(replace(evidence, requests=evidence.requests[:31]))

    assert not document.complete
    assert (document.finished_requests, document.planned_requests) == (31, 60)
    overall = document.comparison.segments[0]
    assert [summary.requests for summary in overall.summaries] == [11, 10, 10]
    assert [pair.pairs for pair in overall.against_baseline] == [10, 10]


def test_a_run_that_finished_nothing_still_has_a_report(evidence: Evidence) -> None:
    document = build_document(replace(evidence, requests=(), sessions=()))

    assert {finding.verdict for finding in document.findings} == {Verdict.INCONCLUSIVE}
    assert document.audit is not None
    assert document.audit.pairs == 0


def test_the_same_evidence_gives_the_same_numbers_through_its_file(
    evidence: Evidence, tmp_path: Path
) -> None:
    path = tmp_path / "run.duckdb"
    with EvidenceWriter.create(
        path, evidence.settings, evidence.environments[0], evidence.prompts
    ) as writer:
        for request in evidence.requests:
            writer.record(request)

    assert build_document(read_evidence(path)) == build_document(evidence)


def test_intervals_follow_from_the_seed_of_the_run(evidence: Evidence) -> None:
    other = replace(evidence, settings=replace(evidence.settings, seed=8))

    first, second = (build_document(e).comparison.segments[0] for e in (evidence, other))

    assert first.against_baseline[0].speed_up.value == second.against_baseline[0].speed_up.value
    assert first.against_baseline[0].speed_up != second.against_baseline[0].speed_up


def give_steps(evidence: Evidence, step_s: dict[tuple[str, str], float]) -> Evidence:
    """Let every step of an arm on a kind emit K + 1 of 20 tokens in `step_s`, a second if none."""
    ks = {arm.name: arm.num_speculative_tokens for arm in evidence.settings.arms}

    def answer(request: RequestRecord) -> RequestRecord:
        k = ks[request.arm]
        time_s = step_s.get((request.prompt_id.partition("-")[0], request.arm), 1.0)
        step = StepRecord(k, k, k + 1, 0.0, time_s, time_s)
        return replace(request, output_token_ids=(0,) * 21, steps=(step,) * (20 // (k + 1)))

    return replace(evidence, requests=tuple(map(answer, evidence.requests)))


def test_a_kind_that_asks_for_another_arm_has_commands_of_its_own(evidence: Evidence) -> None:
    times = {("chat", "ngram-k1"): 1.5, ("chat", "ngram-k4"): 6.0, ("copy", "ngram-k1"): 1.5}

    document = build_document(give_steps(evidence, times))

    assert [finding.arm for finding in document.findings] == ["ngram-k1", "ngram-k1", "ngram-k4"]
    assert [(entry.segment, entry.arm) for entry in document.deployments] == [
        ("overall", "ngram-k1"),
        ("copy", "ngram-k4"),
    ]
    assert '"num_speculative_tokens":4' in document.deployments[1].commands.deploy


def test_an_arm_that_pays_for_every_kind_is_deployed_once(evidence: Evidence) -> None:
    document = build_document(give_steps(evidence, {}))

    assert [finding.arm for finding in document.findings] == ["ngram-k4"] * 3
    (deployment,) = document.deployments
    assert deployment.commands.rollback == "vllm serve HuggingFaceTB/SmolLM2-135M-Instruct"


def test_a_real_divergence_takes_its_arm_out_of_the_findings_and_the_commands(
    evidence: Evidence,
) -> None:
    real = Divergence("ngram-k4", "copy-1", 0, 3, 1, 2, 4.5, "real")

    document = build_document(replace(evidence, divergences=(real,)))

    assert document.comparison.wrong_arms == ("ngram-k4",)
    assert "ngram-k4" not in {finding.arm for finding in document.findings}
    assert {deployment.arm for deployment in document.deployments} == {"ngram-k1"}


def test_a_smoke_run_deploys_no_speculation(make_evidence: MakeEvidence) -> None:
    document = build_document(make_evidence(smoke=True, repeats=1))

    assert {finding.verdict for finding in document.findings} == {Verdict.INCONCLUSIVE}
    (deployment,) = document.deployments
    assert deployment.arm is None
    assert deployment.commands.deploy == deployment.commands.rollback


def test_a_model_unknown_to_the_hub_is_deployed_from_where_it_is(evidence: Evidence) -> None:
    environment = evidence.environments[0]
    local = replace(environment, model=replace(environment.model, hub_id=None))
    settings = replace(evidence.settings, model="/models/mine")

    document = build_document(replace(evidence, environments=(local,), settings=settings))

    assert document.deployments[0].commands.rollback == "vllm serve /models/mine"


def test_outputs_of_sampling_are_not_audited(make_evidence: MakeEvidence) -> None:
    assert build_document(make_evidence(temperature=0.7, repeats=1)).audit is None


def test_drafting_that_takes_most_of_a_step_is_warned_of(make_evidence: MakeEvidence) -> None:
    slow = build_document(make_evidence(draft_s=0.1, ks=(1,)))
    fast = build_document(make_evidence(draft_s=0.0001, ks=(1,)))

    assert fast.warnings == ()
    (warning,) = slow.warnings
    assert warning.startswith("Drafting dominates the steps of ngram-k1: 100.00 of 12")


def test_sessions_on_different_machines_are_warned_of(evidence: Evidence) -> None:
    first = evidence.environments[0]
    same = replace(first, started_at=first.started_at.replace(day=1))
    other = replace(first, cpu="another processor", threads=4)

    resumed = build_document(replace(evidence, environments=(first, same)))
    moved = build_document(replace(evidence, environments=(first, other)))

    assert resumed.warnings == ()
    assert moved.warnings == (
        "The run's 2 sessions differ in threads, cpu: times of one are not those of the other.",
    )
