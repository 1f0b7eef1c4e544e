"""What no run can produce is refused with the reason, and what is missing is derived."""

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from outrider.records.reading import AcceptanceRecord, Cadence, InvalidRecord
from outrider.records.validation import LONGEST_DRAFT, MOST_COUNTED, validated

SOUND: dict[str, Any] = {
    "engine": "vllm",
    "k": 3,
    "histogram": (2, 1, 0, 1),
    "steps": 4,
    "accepted": 4,
    "drafted": 11,
    "per_step_accepted": (0, 1, 3, 0),
    "per_step_drafted": (3, 2, 3, 3),
    "decode_steps": 6,
    "completion_tokens": 10,
    "prompt_tokens": 7,
    "cached_tokens": 0,
    "chunks": 5,
}
BROKEN: tuple[Any, ...] = (-1, 10**30, 1.5, 4.0, float("nan"), float("inf"), True, "4", [], {})


@st.composite
def sound_steps(draw: st.DrawFn) -> tuple[list[int], list[int], int]:
    k = draw(st.integers(1, 6))
    drafted = draw(st.lists(st.integers(0, k), max_size=30))
    return [draw(st.integers(0, d)) for d in drafted], drafted, k


def test_a_sound_record_passes_as_it_is() -> None:
    record = AcceptanceRecord(**SOUND)
    assert validated(record) == record


def test_steps_and_accepted_are_taken_from_the_histogram_alone() -> None:
    record = validated(AcceptanceRecord(engine="typed", histogram=(39, 1, 0, 3), k=3))
    assert (record.steps, record.accepted) == (43, 10)
    assert record.drafted is None


def test_a_histogram_that_leaves_out_its_empty_end_is_made_k_plus_one_long() -> None:
    assert validated(AcceptanceRecord(engine="x", histogram=[3, 1], k=3)).histogram == (3, 1, 0, 0)


def test_a_histogram_longer_than_k_allows_passes_only_where_the_rest_is_empty() -> None:
    assert validated(AcceptanceRecord(engine="x", histogram=[3, 1, 0], k=1)).histogram == (3, 1)
    with pytest.raises(InvalidRecord, match="3 entries for K = 1"):
        validated(AcceptanceRecord(engine="x", histogram=[3, 1, 1], k=1))


@pytest.mark.parametrize("value", BROKEN, ids=repr)
@pytest.mark.parametrize(
    "name",
    [
        "steps",
        "accepted",
        "drafted",
        "requests",
        "k",
        "decode_steps",
        "completion_tokens",
        "prompt_tokens",
        "cached_tokens",
        "chunks",
    ],
)
def test_whatever_is_no_count_is_refused_in_every_field(name: str, value: object) -> None:
    for fields in (SOUND, {"engine": "x", "steps": 4, "accepted": 4, "drafted": 11}):
        with pytest.raises(InvalidRecord):
            validated(AcceptanceRecord(**{**fields, name: value}))


@pytest.mark.parametrize("value", BROKEN, ids=repr)
def test_whatever_is_no_count_is_refused_within_lists(value: Any) -> None:
    with pytest.raises(InvalidRecord):
        validated(AcceptanceRecord(engine="x", k=3, histogram=[1, value, 0, 1]))
    table = [[0] * 4, [0] * 4, [0, value, 0, 0], [2, 0, 0, 1]]
    with pytest.raises(InvalidRecord):
        validated(AcceptanceRecord(**{**SOUND, "draft_table": table}))


@pytest.mark.parametrize("value", [*BROKEN[:6], *BROKEN[7:], 256], ids=repr)
def test_whatever_is_no_length_is_refused_within_the_steps(value: Any) -> None:
    # True is left out: looking at the type of every step would cost more than it could find.
    with pytest.raises(InvalidRecord):
        validated(AcceptanceRecord(**{**SOUND, "per_step_accepted": [0, value, 3, 0]}))
    with pytest.raises(InvalidRecord):
        validated(AcceptanceRecord(**{**SOUND, "per_step_drafted": [3, value, 3, 3]}))


@pytest.mark.parametrize("name", ["histogram", "per_step_accepted", "draft_table"])
@pytest.mark.parametrize("value", [5, "1234", {}, [], {"0": 4}, [None] * 4, 1.5], ids=repr)
def test_whatever_is_no_list_of_counts_is_refused(name: str, value: object) -> None:
    with pytest.raises(InvalidRecord):
        validated(AcceptanceRecord(**{**SOUND, name: value}))


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"steps": 5}, "sums to 4 steps, the record says 5"),
        ({"accepted": 5}, "sums to 4 accepted, the record says 5"),
        ({"drafted": 3}, "4 accepted of 3 drafted"),
        ({"drafted": 13}, "13 drafted in 4 steps of at most 3"),
        ({"drafted": 12}, "the steps sum to 11 drafted, the record says 12"),
        ({"decode_steps": 3}, "4 verification steps among 3 decode steps"),
        ({"per_step_drafted": None}, "only one of drafted, accepted"),
        ({"per_step_accepted": (0, 1, 3)}, "3 accepted and 4 drafted lengths for 4 steps"),
        ({"per_step_drafted": (3, 0, 3, 3)}, "a step accepted more than it drafted"),
        ({"per_step_drafted": (3, 2, 4, 2)}, "a step drafted 4 with K = 3"),
        ({"per_step_accepted": (0, 2, 2, 0), "drafted": None}, "0 steps accepted 1, the histogram"),
        ({"histogram": None, "steps": None, "accepted": 4}, "neither steps nor accepted"),
        ({"histogram": None, "accepted": 13, "drafted": None}, "13 accepted in 4 steps of at most"),
    ],
)
def test_numbers_that_contradict_each_other_are_refused_with_both(
    changes: dict[str, Any], reason: str
) -> None:
    with pytest.raises(InvalidRecord, match=reason):
        validated(AcceptanceRecord(**{**SOUND, **changes}))


@pytest.mark.parametrize(
    ("table", "reason"),
    [
        ([[0, 0], [3, 1]], None),
        ([[0, 0], [3, 2]], "5 steps, the record says 4"),
        ([[0, 0], [2, 2]], "2 accepted, the record says 1"),
        ([[1, 0], [2, 1]], "3 drafted, the record says 4"),
        ([[0, 1], [3, 0]], "accepted more than it drafted"),
        ([[0, 0]], "does not fit K = 1"),
        ([[0, 0, 0], [3, 1, 0]], "does not fit K = 1"),
    ],
)
def test_a_table_by_draft_length_agrees_with_the_sums(
    table: list[list[int]], reason: str | None
) -> None:
    record = AcceptanceRecord(engine="x", k=1, steps=4, accepted=1, drafted=4, draft_table=table)
    if reason is None:
        assert validated(record) is record
    else:
        with pytest.raises(InvalidRecord, match=reason):
            validated(record)


def test_an_enormous_k_is_refused_before_a_histogram_is_made_that_long() -> None:
    with pytest.raises(InvalidRecord, match=f"expected 1 to {LONGEST_DRAFT}"):
        validated(AcceptanceRecord(engine="x", k=10**12, histogram=[1, 2]))


def test_the_largest_exact_count_passes_and_the_next_is_refused() -> None:
    record = AcceptanceRecord(engine="x", steps=MOST_COUNTED, accepted=0)
    assert validated(record) is record
    with pytest.raises(InvalidRecord, match="steps is 9007199254740993"):
        validated(msgspec.structs.replace(record, steps=MOST_COUNTED + 1))


def test_estimated_steps_may_be_fewer_than_k_allows() -> None:
    record = AcceptanceRecord(engine="x", k=2, steps=1, steps_basis="estimated", accepted=4)
    assert validated(record) is record


@given(sound_steps())
def test_every_run_passes_with_its_lists_its_table_and_its_histogram(
    steps: tuple[list[int], list[int], int],
) -> None:
    accepted, drafted, k = steps
    table = [[0] * (k + 1) for _ in range(k + 1)]
    for a, d in zip(accepted, drafted, strict=True):
        table[d][a] += 1
    record = validated(
        AcceptanceRecord(
            engine="x",
            k=k,
            histogram=[accepted.count(j) for j in range(k + 1)],
            drafted=sum(drafted),
            per_step_accepted=accepted,
            per_step_drafted=drafted,
            draft_table=table,
        )
    )
    assert (record.steps, record.accepted) == (len(accepted), sum(accepted))


CADENCE: dict[str, Any] = {
    "answers": 2,
    "gap_cv_sum": 0.9,
    "gaps": 5,
    "gap_sum_ms": 100.0,
    "longest_gap_ms": 40.0,
}


def test_a_sound_cadence_passes_as_it_is() -> None:
    for changes in ({}, {"answers": 0, "gap_cv_sum": 0}, {"gap_sum_ms": 0, "longest_gap_ms": 0}):
        record = AcceptanceRecord(**SOUND, cadence=Cadence(**{**CADENCE, **changes}))
        assert validated(record) == record


@pytest.mark.parametrize("value", [-1, 10**30, float("nan"), float("inf"), True, "4", None])
@pytest.mark.parametrize("name", sorted(CADENCE))
def test_whatever_is_no_time_and_no_count_is_refused_in_a_cadence(name: str, value: Any) -> None:
    with pytest.raises(InvalidRecord):
        validated(AcceptanceRecord(**SOUND, cadence=Cadence(**{**CADENCE, name: value})))


@pytest.mark.parametrize(
    "changes", [{"answers": 3}, {"gaps": 0}, {"longest_gap_ms": 101}, {"longest_gap_ms": 19}]
)
def test_a_cadence_that_contradicts_itself_is_refused(changes: dict[str, Any]) -> None:
    with pytest.raises(InvalidRecord, match="gaps"):
        validated(AcceptanceRecord(**SOUND, cadence=Cadence(**{**CADENCE, **changes})))
