"""A log added up: segments, clusters and sums that do not depend on how it was shared out."""

import numpy as np
import pytest
from tests.replay.answers import answer_of

from outrider.acceptance.totals import Totals
from outrider.records.collecting import Collection
from outrider.records.reading import BadRecord, NoMetrics, Place
from outrider.replay import replaying
from outrider.replay.answer import LoggedAnswer
from outrider.replay.caveats import caveats_of
from outrider.replay.lookup.grid import Grid
from outrider.replay.lookup.registry import lookup_settings
from outrider.replay.replaying import Replay
from outrider.replay.workplaces.base import Replayed

HERE = Place("log", 1)


def log_of(count: int) -> list[LoggedAnswer]:
    generator = np.random.default_rng(5)
    return [
        answer_of(
            generator.integers(0, 5, 30).tolist(),
            generator.integers(0, 5, int(generator.integers(1, 40))).tolist(),
            tags={"kind": ["chat", "copy", "code"][each % 3]},
        )
        for each in range(count)
    ]


def replay(
    answers: list[LoggedAnswer],
    *,
    jobs: int = 1,
    by: tuple[str, ...] = (),
    ks: tuple[int, ...] = (1, 5),
    methods: tuple[str, ...] = ("ngram", "suffix"),
    grid: Grid | None = None,
) -> Collection:
    work = Replay(lookup_settings(methods, grid or Grid()), ks, by=by, jobs=jobs)
    for answer in answers:
        work.add(HERE, answer)
    return work.finish()


def told(collection: Collection) -> dict[tuple[object, ...], Totals]:
    """The totals by K and by the values of the keys in the order of their names."""
    names = sorted(collection.keys)
    return {
        (k, *(dict(zip(collection.keys, values, strict=True))[name] for name in names)): totals
        for (_, _, k, values), totals in collection.cells.items()
    }


def test_every_setting_k_and_tag_has_its_own_sums() -> None:
    collection = replay(log_of(30))
    assert sorted(collection.keys) == ["drafter", "kind", "method"]
    assert len(collection.cells) == 2 * 2 * 3
    assert collection.read == collection.used == 30
    assert {totals.count("requests") for totals in collection.cells.values()} == {10}


@pytest.mark.parametrize("jobs", [2, 3])
@pytest.mark.parametrize(("bound", "most"), [("_BATCH_ANSWERS", 7), ("_BATCH_BYTES", 20_000)])
def test_the_sums_are_the_same_for_any_number_of_threads_and_size_of_batches(
    jobs: int, bound: str, most: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = log_of(50)
    whole = told(replay(log))
    monkeypatch.setattr(replaying, bound, most)
    parts = told(replay(log, jobs=jobs))
    assert whole.keys() == parts.keys()
    for key, totals in whole.items():
        assert np.array_equal(totals.rows, parts[key].rows)


def test_answers_without_tags_are_told_apart_by_the_length_of_their_prompt() -> None:
    log = [answer_of([1] * length, [2, 3]) for length in (10, 200)]
    collection = replay(log, methods=("ngram",), ks=(2,))
    assert {key[1] for key in told(collection)} == {"ngram 2–5 recent"}
    assert {key[3] for key in told(collection)} == {"0–127", "128–511"}


def test_only_the_keys_that_are_asked_for_make_segments() -> None:
    log = [answer_of([1], [2, 3], tags={"kind": "a", "user": str(n)}) for n in range(4)]
    collection = replay(log, methods=("ngram",), ks=(2,), by=("kind", "output_length"))
    assert sorted(collection.keys) == ["drafter", "kind", "method", "output_length"]
    assert len(collection.cells) == 1


def test_answers_of_one_cluster_are_one_row() -> None:
    log = [answer_of([1], [2, 3], cluster=name) for name in ("a", "b", "a", None)]
    [totals] = replay(log, methods=("ngram",), ks=(2,)).cells.values()
    assert len(totals.rows) == 3
    assert totals.count("requests") == 4


def test_a_tag_with_too_many_values_is_given_up_before_the_settings_are_mixed() -> None:
    log = [answer_of([1], [2, 3], tags={"user": str(n)}) for n in range(100)]
    collection = replay(log)
    assert collection.dropped_keys == {"user"}
    assert sorted(collection.keys) == ["drafter", "method"]
    assert len(collection.cells) == 4


def test_the_settings_are_never_mixed_however_many_models_a_log_has(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(replaying, "MOST_SEGMENTS", 1)
    log = [answer_of([1], [2, 3], tags={"model": str(n % 2)}) for n in range(4)]
    grid = Grid(prompt_lookup_min=(1, 2, 3, 4))
    collection = replay(log, methods=("ngram",), ks=(2,), grid=grid)
    assert collection.dropped_keys == {"model"}
    assert sorted(collection.keys) == ["drafter", "method"]
    assert len(collection.cells) == 4


def test_segments_whose_sums_would_not_fit_are_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(replaying, "_SEGMENT_BYTES", 1)
    assert sorted(replay(log_of(30)).keys) == ["drafter", "method"]


def test_what_is_no_answer_is_counted_and_listed() -> None:
    work = Replay(lookup_settings(["ngram"], Grid()), (2,), by=(), jobs=1)
    work.add(HERE, BadRecord("broken"))
    work.add(HERE, NoMetrics("no text"))
    work.add(HERE, answer_of([1], [2, 3]))
    collection = work.finish()
    assert (collection.read, collection.used, collection.bad_count) == (3, 1, 1)
    assert collection.bad == [(HERE, "broken")]
    assert collection.no_metrics == {"no text": 1}


def test_times_out_of_order_and_texts_are_noted() -> None:
    settings = lookup_settings(["suffix"], Grid())
    work = Replay(settings, (2,), by=(), jobs=1)
    for line, (time, text) in enumerate([(5.0, True), (3.0, False), (4.0, True), (6.0, False)]):
        answer = answer_of([1], [2, 3], 9 - line, timestamp_s=time, retokenized=text)
        work.add(Place("log", line + 1), answer)
    collection = work.finish()
    facts = work.facts
    assert (facts.answers, facts.tokens, facts.retokenized, facts.without_end) == (4, 8, 2, 0)
    assert (facts.unsorted, facts.first_unsorted) == (2, Place("log", 2))
    *_, text_told, order_told = caveats_of(Replayed(collection, facts), settings, "tokenizer.json")
    assert text_told.startswith("2 of 4 answers were logged as text and cut into tokens by tok")
    assert "first log:2: the cache of earlier answers learns in the order of the log" in order_told


def test_nothing_at_all_is_no_cell() -> None:
    assert replay([]).cells == {}
