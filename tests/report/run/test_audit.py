from collections.abc import Callable
from dataclasses import replace

import pytest

from outrider.records.divergence import Divergence
from outrider.records.evidence import Evidence
from outrider.records.request import RequestRecord
from outrider.report.run.audit import LosslessnessAudit, audit_outputs

MakeEvidence = Callable[..., Evidence]


@pytest.fixture
def evidence(make_evidence: MakeEvidence) -> Evidence:
    return make_evidence(prompts_of_a_kind=2, repeats=2)


def audit(
    evidence: Evidence,
    measured: tuple[RequestRecord, ...] | None = None,
    divergences: tuple[Divergence, ...] = (),
) -> LosslessnessAudit:
    return audit_outputs(
        evidence.settings.arms, evidence.measured if measured is None else measured, divergences
    )


def end_early(request: RequestRecord) -> RequestRecord:
    return replace(request, output_token_ids=request.output_token_ids[:-1])


def test_every_arm_is_held_against_every_output_of_no_speculation(evidence: Evidence) -> None:
    found = audit(evidence)

    plain = [len(r.output_token_ids) for r in evidence.measured if r.arm == "none"]
    assert found.arms == ("ngram-k1", "ngram-k4")
    assert found.pairs == found.identical_pairs == 2 * len(plain) == 16
    assert found.tokens == 2 * sum(plain)
    assert (found.unclassified_pairs, found.wrong_arms) == (0, frozenset())


def test_an_output_without_its_partner_is_not_compared(evidence: Evidence) -> None:
    unfinished = tuple(
        r for r in evidence.measured if (r.arm, r.prompt_id, r.repeat) != ("none", "chat-1", 1)
    )

    assert audit(evidence, unfinished).pairs == 14


def test_a_difference_is_unclassified_until_a_divergence_tells_its_kind(
    evidence: Evidence,
) -> None:
    measured = tuple(
        end_early(r) if (r.arm, r.prompt_id) == ("ngram-k4", "copy-1") else r
        for r in evidence.measured
    )
    classed = Divergence("ngram-k4", "copy-1", 0, 30, 30, None, 0.01, "near-tie")

    found = audit(evidence, measured, (classed,))

    assert (found.pairs, found.identical_pairs, found.unclassified_pairs) == (16, 14, 1)
    assert found.wrong_arms == frozenset()


def test_real_divergences_come_first_and_mark_their_arm(evidence: Evidence) -> None:
    near = Divergence("ngram-k1", "chat-1", 0, 3, 1, 2, 0.01, "near-tie")
    real = Divergence("ngram-k4", "copy-1", 0, 3, 1, 2, 4.5, "real")

    found = audit(evidence, divergences=(near, real))

    assert found.divergences == (real, near)
    assert found.wrong_arms == {"ngram-k4"}
