"""The choice of K from measured throughput."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from outrider.acceptance.throughput_choice import choose_by_throughput

BY_KIND = {
    "essay": [14.29, 14.74, 13.61, 11.26],
    "code edit": [12.61, 15.16, 16.65, 17.55],
    "translation": [13.30, 15.77, 15.51, 14.97],
    "explanation": [13.69, 16.65, 17.49, 16.87],
}


def test_each_kind_of_prompt_has_its_own_best_k_and_one_k_never_loses() -> None:
    choice = choose_by_throughput({kind: dict(enumerate(row)) for kind, row in BY_KIND.items()})
    assert [segment.best_k for segment in choice.segments] == [1, 3, 1, 2]
    assert choice.global_k == 1
    assert choice.never_worse_than_off is True
    assert {single.k: single.worse_than_off for single in choice.singles} == {
        0: (),
        1: (),
        2: ("essay",),
        3: ("essay",),
    }
    code_edit = choice.segments[1]
    assert code_edit.speed_up == pytest.approx(17.55 / 12.61)
    assert code_edit.regret == pytest.approx(
        {0: 1 - 12.61 / 17.55, 1: 1 - 15.16 / 17.55, 2: 1 - 16.65 / 17.55, 3: 0}
    )
    assert choice.singles[1].largest_regret == pytest.approx(1 - 15.16 / 17.55)


def test_without_a_baseline_no_gain_is_claimed() -> None:
    rows = {
        "4B": {3: 10.5, 5: 8.5, 10: 4.5},
        "1.7B": {3: 11.5, 5: 9.5, 10: 7.5},
        "0.6B": {3: 12.5, 5: 11.5, 10: 9.5},
    }
    choice = choose_by_throughput(rows)
    assert [segment.best_k for segment in choice.segments] == [3, 3, 3]
    assert choice.global_k == 3
    assert all(segment.speed_up is None for segment in choice.segments)
    assert not choice.has_baseline
    assert choice.never_worse_than_off is None
    assert all(single.worse_than_off is None for single in choice.singles)


@pytest.mark.parametrize(
    ("speeds", "best"),
    [
        ({0: 128.64, 2: 175.49, 4: 165.65}, 2),
        ({0: 133.0, 2: 201.69, 4: 198.0, 7: 169.92}, 2),
        ({0: 69.79, 5: 61.79}, 0),
        ({0: 50.0, 1: 60.0, 2: 60.0 * (1 + 1e-12)}, 1),
    ],
)
def test_more_drafts_at_less_speed_are_not_chosen(speeds: dict[int, float], best: int) -> None:
    choice = choose_by_throughput({"all": speeds})
    assert (choice.segments[0].best_k, choice.global_k) == (best, best)


@given(
    st.dictionaries(
        st.sampled_from("abcd"),
        st.lists(st.floats(1, 100), min_size=4, max_size=4),
        min_size=1,
    )
)
def test_the_single_k_is_nowhere_worse_than_off_and_best_of_those(
    speeds: dict[str, list[float]],
) -> None:
    choice = choose_by_throughput({name: dict(enumerate(row)) for name, row in speeds.items()})
    k = choice.global_k
    assert k is not None
    assert all(row[k] >= row[0] * (1 - 1e-9) for row in speeds.values())
    safe = [j for j in range(4) if all(row[j] >= row[0] for row in speeds.values())]
    regret = {j: sum(1 - row[j] / max(row) for row in speeds.values()) for j in range(4)}
    assert regret[k] <= min(regret[j] for j in safe) + 1e-6


def test_segments_that_share_no_k_have_no_single_one() -> None:
    choice = choose_by_throughput({"a": {1: 10.0}, "b": {2: 10.0}})
    assert (choice.global_k, choice.singles) == (None, ())


@pytest.mark.parametrize("rows", [{}, {"a": {}}, {"a": {0: 0.0}}, {"a": {-1: 5.0}}])
def test_what_is_no_measurement_is_refused(rows: dict[str, dict[int, float]]) -> None:
    with pytest.raises(ValueError, match="expected"):
        choose_by_throughput(rows)
