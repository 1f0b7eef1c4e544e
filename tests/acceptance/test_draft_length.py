"""The choice of K from acceptance and a step cost."""

from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from outrider.acceptance.draft_length import TIE, DraftLengthChoice, choose_draft_length
from outrider.acceptance.step_cost import StepCost, parse_step_cost
from outrider.acceptance.totals import Totals
from outrider.records.reading import AcceptanceRecord
from outrider.records.tabulate import tabulate
from outrider.records.validation import validated


def histogram_of_shares(drafts: int, shares: Sequence[float]) -> list[int]:
    tails = [drafts, *(round(drafts * share) for share in shares), 0]
    return [tails[j] - tails[j + 1] for j in range(len(shares) + 1)]


def totals_of(histograms: Sequence[Sequence[int]], **fields: object) -> Totals:
    k = len(histograms[0]) - 1
    records = [
        validated(AcceptanceRecord(engine="any", k=k, histogram=h, **fields))  # type: ignore[arg-type]
        for h in histograms
    ]
    return Totals.empty(k).with_rows(tabulate(records, k))


def choose(totals: Totals, cost: StepCost | str, draws: int = 500) -> DraftLengthChoice:
    step_cost = parse_step_cost(cost) if isinstance(cost, str) else cost
    return choose_draft_length(totals, step_cost, rng=np.random.default_rng(5), draws=draws)


DEEP = [0.600, 0.385, 0.215, 0.108, 0.062] + 10 * [0.0]


@pytest.mark.parametrize("slope", [0, 0.01, 0.05, 0.115, 0.5, 3])
def test_positions_where_nothing_was_accepted_are_never_chosen(slope: float) -> None:
    log_line = totals_of([histogram_of_shares(65, DEEP)], drafted=975)
    choice = choose(log_line, f"1,{slope}")
    assert choice.best_k <= 5
    if slope in {0, 3}:
        assert choice.best_k == (0 if slope else 5)
    assert (choice.best_k_low, choice.best_k_high) == (None, None)
    assert choice.options[0].speed.reason == "a single record gives no interval"
    assert all(0 <= option.regret < 1 for option in choice.options)
    assert choice.estimated


def test_a_second_log_line_with_short_drafts_prefers_them_too() -> None:
    shares = [0.739, 0.478, 0.261, 0.174, 0.130, 0.087, 0.043]
    choice = choose(totals_of([histogram_of_shares(23, shares)], drafted=161), "1,0.115")
    speeds = [(1 + sum(shares[:k])) / (1 + 0.115 * k) for k in range(8)]
    assert choice.best_k == int(np.argmax(speeds)) == 3
    for option, speed in zip(choice.options, speeds, strict=True):
        assert option.speed.value == pytest.approx(speed, rel=2e-3)
        assert option.regret == pytest.approx(1 - speed / max(speeds), abs=2e-3)


def test_two_and_a_half_tokens_at_the_price_of_more_than_three_are_off() -> None:
    # M = 2.46 at K = 3: 50 steps, 73 accepted.
    choice = choose(totals_of([[13, 13, 12, 12]], drafted=150), "0:1,3:3.6")
    assert choice.options[1].tokens_per_step == pytest.approx(2.46)
    assert [option.k for option in choice.options] == [0, 3]
    assert choice.best_k == 0
    assert choice.options[1].regret == pytest.approx(1 - 2.46 / 3.6)
    assert any("K = 1, 2" in note for note in choice.notes)
    assert not choice.estimated


def test_falling_marginal_value_gives_a_smaller_k_than_the_recorded() -> None:
    # Cost of 0.115 a token beyond a fixed 1.155, as fitted to published speeds.
    shares = [0.55, 0.34, 0.12, 0.07]
    histograms = [histogram_of_shares(100 * n, shares) for n in range(1, 30)]
    drafted = [4 * sum(h) for h in histograms]
    records = [
        AcceptanceRecord(engine="any", k=4, histogram=h, drafted=d)
        for h, d in zip(histograms, drafted, strict=True)
    ]
    totals = Totals.empty(4).with_rows(tabulate([validated(r) for r in records], 4))
    cost = StepCost(relative=True, table={0: 1.0}, line=(1.155, 0.115))
    choice = choose(totals, cost)
    assert choice.best_k == 2
    assert choice.best_k_low == choice.best_k_high == 2
    assert choice.options[2].speed.value == pytest.approx(1.89 / 1.385)
    assert choice.options[4].speed.value == pytest.approx(2.08 / 1.615)


def test_costs_in_ms_give_tokens_per_second() -> None:
    choice = choose(totals_of([[5, 5]], drafted=10), "10ms,2ms")
    assert not choice.relative
    assert [o.speed.value for o in choice.options] == pytest.approx([100, 1500 / 12])
    assert [o.step_cost for o in choice.options] == [10, 12]
    assert choice.best_k == 1
    assert any("beyond the recorded K = 1" in note for note in choice.notes)


def test_a_lead_within_two_percent_goes_to_the_smaller_k() -> None:
    choice = choose(totals_of([[40, 60]] * 5), "0:1,1:1.58")
    speeds = [option.speed.value or 0 for option in choice.options]
    assert speeds[0] < speeds[1] < 1.02 * speeds[0]
    assert choice.best_k == 0
    assert choice.options[0].regret == pytest.approx(1 - speeds[0] / speeds[1])
    assert any("a tie, which goes to the smaller" in note for note in choice.notes)


def test_few_answers_do_not_make_a_small_k_the_best_and_the_doubt_is_told() -> None:
    # Single answers scatter widely, and on average K = 1 is clearly faster.
    histograms = [[100, 0], [0, 100], [100, 0], [0, 100], [40, 60]]
    choice = choose(totals_of(histograms), "0:1,1:1.4")
    assert choice.best_k == 1
    assert (choice.best_k_low, choice.best_k_high) == (0, 1)
    assert any("from 0 to 1" in note for note in choice.notes)


def test_a_lead_that_every_answer_shares_holds() -> None:
    choice = choose(totals_of([[10, 90], [20, 80], [15, 85], [5, 95], [10, 90]]), "1,0.1")
    assert choice.best_k == choice.best_k_low == choice.best_k_high == 1


@given(
    st.lists(
        st.lists(st.integers(0, 40), min_size=4, max_size=4).filter(any), min_size=1, max_size=6
    ),
    st.floats(0, 2),
)
@settings(max_examples=60, deadline=None)
def test_speeds_and_regrets_are_those_of_the_tails(
    histograms: list[list[int]], slope: float
) -> None:
    choice = choose(totals_of(histograms), f"1,{slope}", draws=40)
    pooled = np.sum(histograms, axis=0)
    speeds = []
    for k in range(4):
        tokens = 1 + sum(pooled[r:].sum() for r in range(1, k + 1)) / pooled.sum()
        speeds.append(tokens / (1 + slope * k))
    assert [o.speed.value for o in choice.options] == pytest.approx(speeds)
    assert [o.regret for o in choice.options] == pytest.approx(
        [1 - speed / max(speeds) for speed in speeds], abs=1e-9
    )
    if choice.best_k_low is not None and choice.best_k_high is not None:
        assert choice.best_k_low <= choice.best_k <= choice.best_k_high
    if len(histograms) == 1:
        fast = max(speeds) * (1 - TIE)
        assert choice.best_k == min(k for k, speed in enumerate(speeds) if speed >= fast)


def test_short_drafts_are_valued_as_if_they_were_full() -> None:
    record = validated(
        AcceptanceRecord(
            engine="any",
            k=2,
            histogram=[0, 3, 1],
            drafted=6,
            per_step_accepted=[1, 1, 2, 1],
            per_step_drafted=[1, 1, 2, 2],
        )
    )
    choice = choose(Totals.empty(2).with_rows(tabulate([record], 2)), "1,0.1")
    assert [o.tokens_per_step for o in choice.options] == pytest.approx([1, 2, 2.5])
    assert any("shorter than K" in note for note in choice.notes)


def test_what_no_step_shows_is_left_out() -> None:
    record = validated(
        AcceptanceRecord(
            engine="any",
            k=2,
            histogram=[1, 1, 0],
            drafted=2,
            per_step_accepted=[1, 0],
            per_step_drafted=[1, 1],
        )
    )
    choice = choose(Totals.empty(2).with_rows(tabulate([record], 2)), "1,0.1")
    assert [option.k for option in choice.options] == [0, 1]


@pytest.mark.parametrize(
    "fields",
    [
        {"decode_steps": 40},
        # One token of prefill, 15 of steps with a draft, and 30 of plain steps.
        {"completion_tokens": 46},
    ],
)
def test_steps_without_a_draft_count_with_one_token_and_a_plain_step(
    fields: dict[str, int],
) -> None:
    choice = choose(totals_of([[5, 5]], drafted=10, **fields), "1,0.5")
    assert [o.speed.value for o in choice.options] == pytest.approx([1, (15 + 30) / (15 + 30)])
    assert [o.tokens_per_step for o in choice.options] == pytest.approx([1, 1.5])
    assert any("75.0% of decode steps had no draft" in note for note in choice.notes)


def test_tokens_accepted_past_the_end_do_not_make_plain_steps_negative() -> None:
    choice = choose(totals_of([[5, 5]], drafted=10, completion_tokens=12), "1,0.2")
    assert [o.speed.value for o in choice.options] == pytest.approx([1, 1.5 / 1.2])


def test_where_nothing_tells_of_steps_without_a_draft_that_is_said() -> None:
    choice = choose(totals_of([[5, 5]], drafted=10), "1,0.2")
    assert any("unknown how many decode steps had no draft" in note for note in choice.notes)


def test_without_the_cost_of_a_plain_step_nothing_is_said_of_off() -> None:
    choice = choose(totals_of([[5, 5, 5]]), "1:1.1,2:1.2")
    assert [option.k for option in choice.options] == [1, 2]
    assert any("K = 0" in note and "pays" in note for note in choice.notes)


@pytest.mark.parametrize(
    ("fields", "cost", "reason"),
    [
        ({"histogram": [3, 1]}, "1,0.1", "K is unknown"),
        ({"k": 1, "histogram": [0, 0]}, "1,0.1", "S = 0"),
        ({"k": 1, "steps": 9, "accepted": 3}, "1,0.1", "histogram"),
        (
            {"k": 1, "steps": 9, "steps_basis": "estimated", "accepted": 3},
            "1,0.1",
            "only estimated",
        ),
        ({"k": 1, "histogram": [3, 1]}, "2:1.1", "no K from 0 to 1"),
    ],
)
def test_what_cannot_be_said_is_refused_with_the_reason(
    fields: dict[str, object], cost: str, reason: str
) -> None:
    record = validated(AcceptanceRecord(engine="any", **fields))  # type: ignore[arg-type]
    k = record.k or 0
    with pytest.raises(ValueError, match=reason):
        choose(Totals.empty(k).with_rows(tabulate([record], k)), cost)
