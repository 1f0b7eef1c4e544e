"""Which setting is the best, and whether it pays."""

import numpy as np
import pytest

from outrider.acceptance.columns import columns_of
from outrider.acceptance.step_cost import parse_step_cost
from outrider.acceptance.totals import Totals
from outrider.records.collecting import Collection
from outrider.records.reading import Scope
from outrider.report.acceptance.replay.findings import ReplayFindings
from outrider.report.acceptance.replay.ranking import find_replay
from outrider.report.acceptance.replay.telling import verdict_of

KEYS = {"lookup": {"prompt_lookup_min": 2}, "other": {}}


def totals_of(k: int, *, drafted_steps: int, accepted: int, plain_steps: int = 0) -> Totals:
    """Twelve alike answers with so many steps and accepted tokens each."""
    columns = columns_of(k)
    row = np.zeros(columns.width)
    told = {
        "records": 1,
        "requests": 1,
        "steps": drafted_steps,
        "covered_steps": drafted_steps,
        "decode_steps": drafted_steps + plain_steps,
        "accepted": accepted,
        "drafted": k * drafted_steps,
        "completion_tokens": 1 + drafted_steps + accepted + plain_steps,
    }
    for name, value in told.items():
        row[columns[name]] = value
    return Totals.empty(k).with_rows(np.tile(row, (12, 1)))


def found(
    cells: dict[tuple[str, int, str], Totals], cost: str | None, by: tuple[str, ...] = ()
) -> ReplayFindings:
    collection = Collection(
        keys=["kind", "method", "drafter"],
        cells={
            (Scope.REQUEST, "replay", k, (kind, "ngram", setting)): totals
            for (setting, k, kind), totals in cells.items()
        },
    )
    findings = find_replay(
        collection,
        by=by,
        step_cost=None if cost is None else parse_step_cost(cost),
        server_keys=KEYS,
        caveats=(),
    )
    assert findings is not None
    return findings


ONE = totals_of(1, drafted_steps=10, accepted=6, plain_steps=4)  # 20 tokens in 14 steps
FOUR = totals_of(4, drafted_steps=5, accepted=11, plain_steps=4)  # 20 tokens in 9 steps
CELLS = {("lookup", 1, "a"): ONE, ("lookup", 4, "a"): FOUR}


def test_without_a_cost_the_most_tokens_per_decode_step_are_best_and_nothing_is_said_to_pay() -> (
    None
):
    findings = found(CELLS, None)
    best = findings.choice.best
    assert (best.setting, best.k, findings.choice.pays) == ("lookup", 4, None)
    assert best.tokens_per_step.value == pytest.approx(20 / 9)
    assert best.coverage.value == pytest.approx(5 / 9)
    assert best.mean_acceptance_length.value == pytest.approx(1 + 11 / 5)
    assert best.speed_up is None
    assert findings.replayed_k == (1, 4)
    assert findings.choice.flags is not None
    assert "give --step-cost" in verdict_of(findings)


def test_a_speed_up_counts_the_steps_without_a_draft_as_plain_ones() -> None:
    best = found(CELLS, "10ms,2ms").choice.best
    assert best.k == 4
    assert best.speed is not None
    assert best.speed_up is not None
    assert best.speed.value == pytest.approx(1000 * 20 / (5 * 18 + 4 * 10))
    assert best.speed_up.value == pytest.approx(200 / 130)


def test_a_costly_draft_makes_the_smaller_k_the_best() -> None:
    assert found(CELLS, "0:1,1:1.05,4:4").choice.best.k == 1


@pytest.mark.parametrize(("cost", "pays"), [("0:1,4:1.1", True), ("0:1,4:3.2", False)])
def test_only_a_gain_that_is_no_tie_pays(cost: str, pays: bool) -> None:
    findings = found({("lookup", 4, "a"): FOUR}, cost)
    assert findings.choice.pays is pays
    assert (findings.choice.flags is not None) is pays
    assert ("None pays" in verdict_of(findings)) is not pays


def test_a_tie_goes_to_the_smaller_k_whichever_setting_has_it() -> None:
    # 20 tokens in 9 steps at K = 4, and 40 in 18 at K = 2.
    two = totals_of(2, drafted_steps=12, accepted=22, plain_steps=6)
    findings = found({("lookup", 4, "a"): FOUR, ("other", 2, "a"): two}, None)
    assert (findings.choice.best.setting, findings.choice.best.k) == ("other", 2)
    assert {each.setting for each in findings.settings} == {"lookup", "other"}


def test_a_k_without_a_cost_is_left_out() -> None:
    assert found(CELLS, "0:1,1:1").choice.best.k == 1


def test_each_segment_has_its_own_best() -> None:
    poor = totals_of(4, drafted_steps=10, accepted=1)
    cells = {**CELLS, ("lookup", 4, "b"): poor, ("lookup", 1, "b"): ONE}
    findings = found(cells, "1,0.3", by=("kind",))
    assert [(each.segment, each.best.k, each.pays) for each in findings.segments] == [
        ("kind a", 4, True),
        ("kind b", 1, True),
    ]
    assert findings.choice.best.answers == 24
    for each in findings.segments:
        assert each.flags is not None
        assert f'"num_speculative_tokens":{each.best.k}' in each.flags


def test_one_segment_is_no_table() -> None:
    assert found(CELLS, "1,0.3", by=("kind",)).segments == ()
