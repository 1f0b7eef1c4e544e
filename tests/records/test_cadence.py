"""The gaps within answers, and that no way of splitting a source changes what they come to."""

import io
import json
from pathlib import Path
from statistics import fmean, pstdev
from typing import Any

import httpx2
import pytest
from hypothesis import given
from hypothesis import strategies as st

from outrider.acceptance.totals import Totals
from outrider.records import collect as collect_module
from outrider.records.cadence import cadence_of
from outrider.records.collect import collect
from outrider.records.collecting import Collection, Collector
from outrider.records.partial import partial_from_json, write_partial
from outrider.records.reading import AcceptanceRecord, Cadence, InvalidRecord, Place
from outrider.records.sources import line_ranges

GAPS = st.lists(st.floats(0.001, 1e4), max_size=6)


def answer(gaps: list[float] | None, **fields: Any) -> AcceptanceRecord:
    cadence = None if gaps is None else cadence_of([gaps])
    return AcceptanceRecord(engine="x", k=1, histogram=[1, 1], cadence=cadence, **fields)


def collected(records: list[AcceptanceRecord]) -> Collection:
    collector = Collector()
    for line, record in enumerate(records, start=1):
        collector.add(Place("a.jsonl", line), record)
    return collector.finish()


def only(collection: Collection) -> Totals:
    [totals] = collection.cells.values()
    return totals


def gap_sums(totals: Totals) -> list[float]:
    names = ("gaps", "gap_sum_ms", "gap_answers", "gap_cv_sum")
    return [float(totals.sums[totals.columns[name]]) for name in names]


def test_an_answer_with_one_stall_worked_out_by_hand() -> None:
    cadence = cadence_of([[10, 10, 10, 50]])
    assert cadence is not None
    assert (cadence.answers, cadence.gaps, cadence.gap_sum_ms) == (1, 4, 80)
    assert cadence.longest_gap_ms == 50
    # Mean 20, deviations 10, 10, 10 and 30: sqrt(1200 / 4) / 20.
    assert cadence.gap_cv_sum == pytest.approx(300**0.5 / 20)


def test_answers_that_are_even_within_are_even_whatever_differs_between_them() -> None:
    cadence = cadence_of([[10] * 5, [40] * 5])
    assert cadence == Cadence(answers=2, gap_cv_sum=0, gaps=10, gap_sum_ms=250, longest_gap_ms=40)


def test_a_single_gap_has_a_length_and_no_variation() -> None:
    cadence = cadence_of([[], [7], [0, 0]])
    assert cadence == Cadence(answers=0, gap_cv_sum=0, gaps=3, gap_sum_ms=7, longest_gap_ms=7)


def test_gaps_are_taken_from_their_unit_to_ms() -> None:
    cadence = cadence_of([[0.01, 0.03]], unit_ms=1000)
    assert cadence is not None
    assert (cadence.gap_sum_ms, cadence.longest_gap_ms) == pytest.approx((40, 30))
    assert cadence.gap_cv_sum == pytest.approx(0.5)


@pytest.mark.parametrize("answers", [[], [[]], [[], []]])
def test_without_a_gap_the_cadence_is_unknown(answers: list[list[float]]) -> None:
    assert cadence_of(answers) is None


@pytest.mark.parametrize(
    "gap", [-0.001, float("nan"), float("inf"), "5", True, None, [1], 10**400], ids=repr
)
def test_what_is_no_time_is_refused_wherever_it_stands(gap: Any) -> None:
    for gaps in ([gap, 1, 2], [1, gap, 2], [1, 2, gap]):
        with pytest.raises(InvalidRecord, match="no time"):
            cadence_of([[3, 4], gaps])


@given(st.lists(GAPS, max_size=8))
def test_the_sums_are_those_of_the_answers_one_by_one(answers: list[list[float]]) -> None:
    cadence = cadence_of(answers)
    every = [gap for gaps in answers for gap in gaps]
    if not every:
        assert cadence is None
        return
    assert cadence is not None
    several = [gaps for gaps in answers if len(gaps) > 1]
    assert (cadence.gaps, cadence.answers) == (len(every), len(several))
    assert cadence.longest_gap_ms == max(every)
    assert cadence.gap_sum_ms == pytest.approx(sum(every))
    variation = sum(pstdev(gaps) / fmean(gaps) for gaps in several)
    assert cadence.gap_cv_sum == pytest.approx(variation, abs=1e-9)


@given(
    st.lists(st.none() | GAPS, min_size=1, max_size=20),
    st.integers(0, 20),
    st.lists(st.sampled_from([None, "a", "b"]), min_size=20, max_size=20),
)
def test_parts_that_are_merged_have_the_cadence_of_the_whole(
    answers: list[list[float] | None], cut: int, clusters: list[str | None]
) -> None:
    records = [
        answer(gaps, cluster=cluster) for gaps, cluster in zip(answers, clusters, strict=False)
    ]
    merged = Collector()
    for part in (records[:cut], records[cut:]):
        merged.merge(collected(part))
    parts, whole = only(merged.finish()), only(collected(records))
    assert gap_sums(parts) == pytest.approx(gap_sums(whole), rel=1e-12)
    every = [gap for gaps in answers for gap in gaps or ()]
    assert parts.longest_gap_ms == whole.longest_gap_ms == max(every, default=None)


def test_records_without_gaps_leave_those_of_others_as_they_are() -> None:
    totals = only(collected([answer(None), answer([10, 30]), answer(None)]))
    assert gap_sums(totals) == [2, 40, 1, 0.5]
    assert totals.longest_gap_ms == 30
    unknown = only(collected([answer(None)]))
    assert unknown.longest_gap_ms is None
    assert unknown.count("gaps") == 0


def test_a_file_of_sums_keeps_the_cadence(tmp_path: Path) -> None:
    path = tmp_path / "a.partial"
    collection = collected([answer([10, 10, 10, 50]), answer(None), answer([3.25])])
    write_partial(collection, path)
    again = only(partial_from_json(json.loads(path.read_text(encoding="utf-8"))))
    assert again.longest_gap_ms == only(collection).longest_gap_ms == 50
    assert gap_sums(again) == gap_sums(only(collection))


@pytest.mark.parametrize("longest", [None, -1, float("nan"), float("inf"), "5"])
def test_a_file_of_sums_with_an_impossible_longest_gap_is_refused(
    longest: Any, tmp_path: Path
) -> None:
    path = tmp_path / "a.partial"
    write_partial(collected([answer([10, 30])]), path)
    content = json.loads(path.read_text(encoding="utf-8"))
    content["cells"][0]["longest_gap_ms"] = longest
    with pytest.raises(InvalidRecord):
        partial_from_json(content)


def test_several_processes_find_the_same_cadence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    case = Path(__file__).parent / "cases" / "bench" / "aiperf-0.13.jsonl"
    request = json.loads(case.read_text(encoding="utf-8").splitlines()[0])
    lines = []
    for number in range(60):
        request["metadata"]["x_request_id"] = f"request-{number}"
        gaps = [10.0, 10.0 + number, 7.5 * (number % 3)]
        request["metrics"]["inter_chunk_latency"] = {"value": gaps, "unit": "ms"}
        lines.append(json.dumps(request))
    path = tmp_path / "profile_export.jsonl"
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")

    def read(jobs: int) -> Totals:
        with httpx2.Client() as http:
            found = collect(
                [str(path)], by=(), forced=None, stdin=io.BytesIO(), http=http, jobs=jobs
            )
        return only(found)

    alone = read(1)
    monkeypatch.setattr(
        collect_module,
        "line_ranges",
        lambda path: line_ranges.line_ranges(path, range_bytes=8_000),
    )
    together = read(2)
    assert alone.longest_gap_ms == together.longest_gap_ms == 69
    assert gap_sums(together) == pytest.approx(gap_sums(alone), rel=1e-12)
    assert together.count("gaps") == 180
