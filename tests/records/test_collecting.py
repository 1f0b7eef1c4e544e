"""Readings become sums per segment; merging parts gives what reading all at once gives."""

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from outrider.records.collecting import (
    MOST_CELLS,
    MOST_LISTED,
    MOST_VALUES,
    Collection,
    Collector,
    settled,
)
from outrider.records.reading import (
    AcceptanceRecord,
    BadRecord,
    NoMetrics,
    Place,
    Reading,
    Scope,
    TagValue,
)

HERE = Place("answers.jsonl", 1)


def record(steps: int = 10, accepted: int = 4, **tags: TagValue) -> AcceptanceRecord:
    return AcceptanceRecord(engine="vllm", k=2, steps=steps, accepted=accepted, tags=tags)


def collect(*readings: Reading | Collection, by: tuple[str, ...] = ()) -> Collection:
    collector = Collector(by)
    for reading in readings:
        collector.add(HERE, reading)
    return collector.finish()


def sums_by_segment(collection: Collection) -> dict[tuple[object, ...], tuple[int, ...]]:
    """The sums of each segment, whatever the order of keys and cells."""
    return {
        (
            scope,
            engine,
            k,
            frozenset(
                pair for pair in zip(collection.keys, values, strict=True) if pair[1] is not None
            ),
        ): tuple(totals.count(name) for name in ("records", "steps", "accepted"))
        for (scope, engine, k, values), totals in collection.cells.items()
    }


def whole(collection: Collection, name: str) -> int:
    return sum(totals.count(name) for totals in collection.cells.values())


tags = st.dictionaries(
    st.sampled_from(["kind", "language", "temperature"]),
    st.one_of(st.sampled_from(["a", "b", "c"]), st.floats(0, 2)),
    max_size=3,
)
readings = st.lists(
    st.one_of(
        st.builds(
            AcceptanceRecord,
            engine=st.sampled_from(["vllm", "sglang"]),
            k=st.sampled_from([None, 1, 3]),
            steps=st.integers(1, 40),
            accepted=st.integers(0, 1),
            prompt_tokens=st.sampled_from([None, 5, 500]),
            tags=tags,
        ),
        st.sampled_from([NoMetrics("n > 1"), BadRecord("cut off"), record(steps=-1)]),
    ),
    max_size=30,
)


@given(st.lists(readings, max_size=4))
def test_merging_what_was_collected_apart_equals_collecting_all_at_once(
    parts: list[list[Reading]],
) -> None:
    together = collect(*[reading for part in parts for reading in part])
    merged = collect(*[collect(*part) for part in parts])
    assert sums_by_segment(merged) == sums_by_segment(together)
    assert set(merged.keys) == set(together.keys)
    assert (merged.read, merged.used, merged.bad_count) == (
        together.read,
        together.used,
        together.bad_count,
    )
    assert merged.no_metrics == together.no_metrics
    assert merged.bad == together.bad


@given(readings)
def test_every_reading_is_used_explained_or_bad(drawn: list[Reading]) -> None:
    collection = collect(*drawn)
    assert collection.read == len(drawn)
    assert collection.read == (
        collection.used + collection.no_metrics.total() + collection.bad_count
    )
    assert whole(collection, "records") == collection.used


@given(readings)
def test_the_cells_hold_every_step_of_the_records_that_count(drawn: list[Reading]) -> None:
    sound = [r for r in drawn if isinstance(r, AcceptanceRecord) and (r.steps or 0) > 0]
    collection = collect(*drawn)
    assert whole(collection, "steps") == sum(r.steps or 0 for r in sound)
    assert whole(collection, "accepted") == sum(r.accepted or 0 for r in sound)


def test_records_of_different_k_scope_or_engine_are_never_in_one_cell() -> None:
    fields: tuple[dict[str, object], ...] = (
        {"engine": "vllm", "k": 2},
        {"engine": "vllm", "k": 3},
        {"engine": "vllm", "k": None},
        {"engine": "sglang", "k": 2},
        {"engine": "vllm", "k": 2, "scope": Scope.SERVER},
    )
    collection = collect(*[AcceptanceRecord(steps=1, accepted=0, **f) for f in fields])  # type: ignore[arg-type]
    assert len(collection.cells) == len(fields)


def test_a_key_that_comes_late_is_unknown_for_the_records_before() -> None:
    collection = collect(record(), record(kind="code"), record())
    assert collection.keys == ["kind"]
    assert {key[3]: totals.count("records") for key, totals in collection.cells.items()} == {
        (None,): 2,
        ("code",): 1,
    }


def test_a_key_with_too_many_values_is_dropped_and_the_sums_stay() -> None:
    many = [record(user=f"u{n}", kind="ab"[n % 2]) for n in range(MOST_VALUES + 1)]
    collection = collect(*many)
    assert collection.dropped_keys == {"user"}
    assert collection.keys == ["kind"]
    assert len(collection.cells) == 2
    assert whole(collection, "steps") == 10 * len(many)


def test_a_key_with_as_many_values_as_allowed_is_kept() -> None:
    collection = collect(*[record(user=f"u{n}") for n in range(MOST_VALUES)])
    assert collection.dropped_keys == set()
    assert len(collection.cells) == MOST_VALUES


def test_a_dropped_key_stays_dropped_in_what_is_merged() -> None:
    many = collect(*[record(user=f"u{n}") for n in range(MOST_VALUES + 1)])
    for parts in ((many, collect(record(user="u0"))), (collect(record(user="u0")), many)):
        merged = collect(*parts)
        assert merged.keys == []
        assert len(merged.cells) == 1
        assert whole(merged, "records") == MOST_VALUES + 2


def test_a_key_that_was_asked_for_is_kept_with_many_values_and_others_are_not_kept() -> None:
    many = [record(user=f"u{n}", kind="ab"[n % 2]) for n in range(MOST_VALUES + 1)]
    collection = collect(*many, by=("user",))
    assert collection.keys == ["user"]
    assert len(collection.cells) == len(many)


def test_records_of_different_methods_stay_apart_whatever_was_asked_for() -> None:
    collection = collect(
        record(kind="code", method="ngram"), record(kind="code", method="eagle"), by=("kind",)
    )
    assert len(collection.cells) == 2


def test_the_number_of_cells_is_bounded_however_keys_combine() -> None:
    crossed = [record(a=a, b=b, c=c) for a in range(12) for b in range(12) for c in range(12)]
    collection = collect(*crossed)
    assert len(collection.cells) <= MOST_CELLS
    assert whole(collection, "records") == len(crossed)


def test_a_second_record_of_the_same_answer_is_bad() -> None:
    one = AcceptanceRecord(engine="vllm", id="chatcmpl-1", steps=3, accepted=1)
    two = AcceptanceRecord(engine="vllm", id="chatcmpl-2", steps=3, accepted=1)
    collection = collect(one, two, one)
    assert whole(collection, "records") == 2
    assert collection.bad == [(HERE, "the answer chatcmpl-1 was read before")]


def test_records_without_an_id_are_never_taken_for_one_another() -> None:
    assert whole(collect(record(), record()), "records") == 2


def test_of_several_states_of_the_same_counters_only_the_last_counts() -> None:
    states = [
        AcceptanceRecord(
            engine="vllm",
            scope=Scope.SERVER,
            snapshot=counters,
            requests=None,
            steps=steps,
            accepted=1,
        )
        for counters, steps in (("a", 5), ("b", 7), ("a", 50), ("a", 20))
    ]
    collection = settled(collect(*states))
    assert whole(collection, "steps") == 57
    assert collection.used == 2
    assert collection.no_metrics == Counter({"an earlier state of the same counters": 2})


def test_states_of_the_same_counters_in_two_collections_are_not_added() -> None:
    states = [
        AcceptanceRecord(engine="x", scope=Scope.SERVER, snapshot="a", steps=steps, accepted=1)
        for steps in (5, 50)
    ]
    merged = settled(collect(collect(states[1]), collect(states[0])))
    assert whole(merged, "steps") == 50
    assert (merged.read, merged.used) == (2, 1)


def test_bad_records_are_listed_up_to_a_limit_and_counted_beyond() -> None:
    collector = Collector()
    for line in range(MOST_LISTED + 5):
        collector.add(Place("a.jsonl", line), BadRecord(f"reason {line}"))
    collection = collector.finish()
    assert collection.bad_count == MOST_LISTED + 5
    assert collection.bad[0] == (Place("a.jsonl", 0), "reason 0")
    assert len(collection.bad) == MOST_LISTED


def test_a_record_that_no_run_can_produce_is_listed_with_the_reason() -> None:
    collection = collect(record(steps=2, accepted=9))
    assert collection.cells == {}
    assert collection.bad == [(HERE, "9 accepted in 2 steps of at most 2")]


@pytest.mark.parametrize("count", [4095, 4096, 4097, 9000])
def test_a_long_stream_adds_up_across_flushes(count: int) -> None:
    collector = Collector()
    for n in range(count):
        collector.add(HERE, record(steps=n + 1, accepted=1, kind="ab"[n % 2]))
    collection = collector.finish()
    assert whole(collection, "records") == count
    assert whole(collection, "steps") == count * (count + 1) // 2


def test_length_bands_are_told_apart_even_where_all_else_is_alike() -> None:
    answers = [
        AcceptanceRecord(engine="x", steps=1, accepted=0, prompt_tokens=prompt)
        for prompt in (0, 127, 128, 511, 512, 127)
    ]
    collection = collect(*answers)
    assert {key[3][0]: t.count("records") for key, t in collection.cells.items()} == {
        "0–127": 3,
        "128–511": 2,
        "512–2047": 1,
    }
