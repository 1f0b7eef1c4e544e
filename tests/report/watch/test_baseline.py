import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from outrider.acceptance.alarm_band import ChartBand
from outrider.errors import InvalidSetting
from outrider.report.watch.baseline import Baseline


def entry(ci: Sequence[float] | None = (1.7, 1.9), **segment: Any) -> dict[str, Any]:
    return {
        "name": ", ".join(f"{name} {value}" for name, value in segment.items()),
        "segment": {"scope": "request", "engine": "vllm", "k": 3, **segment},
        "steps": 10_000,
        "clusters": 200,
        "mean_acceptance_length": 1.8,
        "mean_acceptance_length_ci": ci,
    }


def baseline(path: Path, *segments: Any, whole: Sequence[Any] = ()) -> Baseline:
    report = {"schema": "outrider.report/1", "segments": segments, "whole": whole, "other": 1}
    file = path / "baseline.json"
    file.write_text(json.dumps(report))
    return Baseline(str(file))


WATCHED: dict[str, Any] = {
    "scope": "interval",
    "engine": "vllm",
    "k": 3,
    "model": "m",
    "method": None,
}


def test_answers_are_a_baseline_for_the_counters_of_the_same_server(tmp_path: Path) -> None:
    band = baseline(tmp_path, entry(model="m")).band(WATCHED)
    assert isinstance(band, ChartBand)
    assert (band.centre, band.steps, band.top) == (1.8, 10_000, 4.0)
    low = band.limits(2000).low
    assert low is not None
    # 0.1 is about two standard errors over 10,000 steps; three of them over 2,000 steps.
    assert low == pytest.approx(1.8 - 3 * (0.1 / 1.96) * (10_000 / 2000 + 1) ** 0.5, rel=0.02)


def test_a_log_that_tells_no_model_has_the_baseline_of_its_only_one(tmp_path: Path) -> None:
    found = baseline(tmp_path, entry(model="m")).band({**WATCHED, "scope": "log", "model": None})
    assert isinstance(found, ChartBand)


def test_every_rank_is_held_against_the_whole(tmp_path: Path) -> None:
    assert isinstance(baseline(tmp_path, entry()).band({**WATCHED, "rank": "5"}), ChartBand)


@pytest.mark.parametrize(
    "watched", [{**WATCHED, "k": 5}, {**WATCHED, "model": "other"}, {**WATCHED, "kind": "chat"}]
)
def test_another_segment_is_no_baseline(watched: dict[str, Any], tmp_path: Path) -> None:
    told = baseline(tmp_path, entry(model="m")).band(watched)
    assert told == "the baseline has no such segment"


def test_the_parts_of_a_split_are_not_its_whole(tmp_path: Path) -> None:
    split = baseline(
        tmp_path, entry(kind="chat"), entry(kind="copy", ci=(2.0, 2.2)), whole=[entry()]
    )
    assert isinstance(split.band(WATCHED), ChartBand)
    assert isinstance(split.band({**WATCHED, "kind": "copy"}), ChartBand)


def test_of_several_that_fit_the_one_of_the_same_scope_counts(tmp_path: Path) -> None:
    log = {**WATCHED, "scope": "log"}
    two = baseline(tmp_path, entry(), entry(scope="log", ci=None))
    assert "no interval" in str(two.band(log))
    assert str(two.band(WATCHED)).startswith("the baseline has several")


def test_a_file_that_is_no_report_is_told(tmp_path: Path) -> None:
    (tmp_path / "x.json").write_text("{}")
    for name in ("x.json", "missing.json"):
        with pytest.raises(InvalidSetting, match="--baseline"):
            Baseline(str(tmp_path / name))


@pytest.mark.parametrize(
    "damage",
    [
        {"mean_acceptance_length": -3.0},
        {"mean_acceptance_length": 1e300},
        {"mean_acceptance_length_ci": [1.9, 1.7]},
        {"mean_acceptance_length_ci": [-1.0, 1.7]},
        {"clusters": -5},
        {"steps": 10**30},
        {"naive_survival": [1.5]},
        {"naive_survival": [0.5] * 4},
        {"segment": {"k": "3"}},
        {"segment": {"k": -1}},
    ],
    ids=str,
)
def test_a_report_with_impossible_figures_is_none(damage: dict[str, Any], tmp_path: Path) -> None:
    with pytest.raises(InvalidSetting, match="not a report of schema"):
        baseline(tmp_path, {**entry(), **damage})
