"""Files replayed apart from each other, against all of them as one log."""

import io
from collections.abc import Sequence
from pathlib import Path

import pytest
from tests.replay.workplaces.logs import (
    ANSWERS,
    FILES,
    check_equal,
    folder_of_logs,
    row,
    told,
    work,
    write,
)
from tests.replay.workplaces.workers import one_by_one

from outrider.errors import InvalidSetting, UnreadableSource
from outrider.records.reading import Place
from outrider.replay.caveats import caveats_of
from outrider.replay.lookup.grid import Grid
from outrider.replay.workplaces.base import Work
from outrider.replay.workplaces.here import Here
from outrider.replay.workplaces.log_files import LogFile
from outrider.replay.workplaces.spreading import Lost, Parts, replay_file, spread

HERE = Here(io.BytesIO())


@pytest.fixture
def logs(tmp_path: Path) -> Path:
    return folder_of_logs(tmp_path / "logs")


def test_settings_that_remember_nothing_have_the_sums_of_one_log(logs: Path) -> None:
    together, apart = (
        HERE.replay(work(), [str(logs)]),
        spread(work(), [str(logs)], one_by_one),
    )
    check_equal(together.collection, apart.collection)
    assert apart.collection.used == FILES * ANSWERS
    assert apart.collection.bad_count == FILES + 2
    assert together.facts == apart.facts
    assert (apart.files, apart.lost) == (FILES + 1, 0)


def test_a_cache_of_earlier_answers_begins_anew_in_each_file_and_that_is_said(logs: Path) -> None:
    remembering = work(Grid())
    together = HERE.replay(remembering, [str(logs)])
    apart = spread(remembering, [str(logs)], one_by_one)
    same, other = told(together.collection), told(apart.collection)
    assert same.keys() == other.keys()
    changed = {key[1] for key in same if (same[key].sums != other[key].sums).any()}
    assert changed == {"suffix"}
    first, *_ = caveats_of(apart, remembering.settings, None)
    assert first.startswith("Each of the 5 files was replayed with an empty cache")
    assert "empty cache" not in " ".join(caveats_of(together, remembering.settings, None))
    assert "empty cache" not in " ".join(caveats_of(apart, work().settings, None))


def test_a_file_of_another_tokenizer_than_the_first_is_bad_as_in_one_log(tmp_path: Path) -> None:
    files: list[list[dict[str, str]]] = [[{}], [{"tokenizer": "a"}], [{"tokenizer": "b"}, {}]]
    names = [
        str(write(tmp_path / f"{n}.jsonl", [row(n, **told) for told in entries]))
        for n, entries in enumerate(files)
    ]
    together, apart = HERE.replay(work(), names), spread(work(), names, one_by_one)
    check_equal(together.collection, apart.collection)
    assert apart.collection.bad_count == 1


def test_a_file_that_its_worker_cannot_open_is_listed_by_the_name_it_was_given() -> None:
    part = replay_file(work(), LogFile("there.jsonl", "/nowhere/there.jsonl"))
    assert part.collection.bad == [(Place("there.jsonl"), "does not exist")]
    assert (part.collection.read, part.collection.used) == (1, 0)


def test_a_lost_file_is_listed_and_makes_the_figures_incomplete(logs: Path) -> None:
    def second_dies(work: Work, files: Sequence[LogFile]) -> Parts:
        for place, file in enumerate(files):
            yield Lost("its worker died") if place == 1 else replay_file(work, file)

    found = spread(work(), [str(logs)], second_dies)
    assert (found.files, found.lost) == (FILES + 1, 1)
    assert found.collection.used == (FILES - 1) * ANSWERS
    assert (Place(str(logs / "part-1.jsonl")), "its worker died") in found.collection.bad
    first, *_ = caveats_of(found, work().settings, None)
    assert first.startswith("Incomplete: 1 of 5 files are in no figure")


def test_what_cannot_be_spread_is_refused_before_anything_runs() -> None:
    asked: list[LogFile] = []

    def noted(work: Work, files: Sequence[LogFile]) -> Parts:
        asked.extend(files)
        yield from one_by_one(work, files)

    with pytest.raises(InvalidSetting, match="standard input; expected files"):
        spread(work(), ["-"], noted)
    with pytest.raises(UnreadableSource, match="missing does not exist"):
        spread(work(), [__file__, "missing"], noted)
    assert asked == []
