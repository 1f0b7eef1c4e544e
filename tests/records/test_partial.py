import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from outrider.errors import UnwritableOutput
from outrider.records.collecting import Collection, Collector
from outrider.records.partial import partial_from_json, write_partial
from outrider.records.reading import (
    AcceptanceRecord,
    BadRecord,
    InvalidRecord,
    NoMetrics,
    Place,
    Reading,
)
from outrider.report.acceptance.as_json import report_to_json
from outrider.report.acceptance.building import build_acceptance_report

READINGS: list[Reading] = [
    *(
        AcceptanceRecord(
            engine="vllm",
            k=2,
            histogram=[number, 2, 1],
            drafted=2 * (number + 3),
            prompt_tokens=50 * number,
            tags={"kind": "ab"[number % 2]} if number > 3 else {},
        )
        for number in range(12)
    ),
    NoMetrics("n > 1"),
    BadRecord("cut short"),
    AcceptanceRecord(engine="x", steps=3, accepted=1),
]


def collected(readings: list[Reading], first_line: int = 1) -> Collection:
    collector = Collector()
    for line, reading in enumerate(readings, start=first_line):
        collector.add(Place("a.jsonl", line), reading)
    return collector.finish()


def through_file(collection: Collection, path: Path) -> Collection:
    write_partial(collection, path)
    return partial_from_json(json.loads(path.read_text(encoding="utf-8")))


@pytest.mark.parametrize("cut", [0, 2, 7, 14])
def test_parts_read_apart_and_merged_give_the_report_of_all_at_once(
    cut: int, tmp_path: Path
) -> None:
    merged = Collector()
    for number, part in enumerate((READINGS[:cut], READINGS[cut:])):
        whole = collected(part, first_line=1 + number * cut)
        merged.merge(through_file(whole, tmp_path / f"{number}.partial"))

    def report(collection: Collection) -> dict[str, Any]:
        return report_to_json(build_acceptance_report(collection, sources=["a"]))

    assert report(merged.finish()) == report(collected(READINGS))


def damaged(change: Callable[[dict[str, Any]], object], path: Path) -> dict[str, Any]:
    write_partial(collected(READINGS), path)
    content: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    change(content)
    return content


@pytest.mark.parametrize(
    "change",
    [
        lambda content: content.pop("cells"),
        lambda content: content["cells"][0].update(k=3),
        lambda content: content["cells"][0].update(scope="galaxy"),
        lambda content: content["cells"][0]["columns"].reverse(),
        lambda content: content["cells"][0]["rows"][0].pop(),
        lambda content: content["cells"][0]["values"].append("x"),
        lambda content: content.update(read="many"),
        lambda content: content["cells"][0].update(k=-1),
        lambda content: content["cells"][0].update(k=10**9),
        lambda content: content["cells"].append(content["cells"][0]),
        lambda content: content.update(cells=[]),
        lambda content: content.update(read=-5),
        lambda content: content.update(used=10**6),
        lambda content: content.update(bad_count=10**30),
        lambda content: content["no_metrics"].update(x=-3),
        lambda content: content["cells"][0]["rows"][0].__setitem__(3, -1),
    ],
)
def test_a_damaged_partial_report_is_refused(
    change: Callable[[dict[str, Any]], object], tmp_path: Path
) -> None:
    with pytest.raises(InvalidRecord):
        partial_from_json(damaged(change, tmp_path / "a.partial"))


def test_a_folder_that_is_missing_is_told_in_one_line(tmp_path: Path) -> None:
    with pytest.raises(UnwritableOutput, match="cannot be written"):
        write_partial(collected(READINGS), tmp_path / "missing" / "a.partial")
