import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from tests.report.acceptance.builders import collected, record, two_kinds

from outrider.errors import InvalidSetting
from outrider.records.reading import AcceptanceRecord, Scope
from outrider.report.acceptance.as_json import report_to_json
from outrider.report.acceptance.building import build_acceptance_report
from outrider.report.acceptance.document import AcceptanceReport
from outrider.report.acceptance.expected.asked import read_expected
from outrider.report.acceptance.expected.causes import CAUSES
from outrider.report.acceptance.expected.expectation import Cause, Expectation
from outrider.report.acceptance.expected.holding import held_against

ORDER = (
    "chat template",
    "quantisation",
    "K",
    "dataset",
    "engine",
    "sampling",
    "target and drafter",
    "length and language",
    "counting",
)


def held(
    records: Sequence[AcceptanceRecord], wanted: str, by: Sequence[str] = ()
) -> AcceptanceReport:
    made = build_acceptance_report(collected(records, by), sources=["a"], by=by)
    return held_against(made, read_expected(wanted))


def only(found: AcceptanceReport) -> Expectation:
    [segment] = found.whole or found.segments
    assert segment.expected is not None
    return segment.expected


def causes(expectation: Expectation) -> Mapping[str, Cause]:
    return {cause.name: cause for cause in expectation.causes}


def spread(k: int = 3, **tags: Any) -> list[AcceptanceRecord]:
    """Eight answers with M near 2.1 at K = 3; deeper positions are as good as never reached."""
    return [record([4 + n, 3, 2, 3, *[0] * (k - 3)], **tags) for n in range(8)]


def test_a_figure_in_the_interval_is_as_expected_and_needs_no_checklist() -> None:
    found = only(held(spread(), "2.0"))
    assert found.outcome == "as expected"
    assert found.causes == ()
    assert "agrees with the expected 2" in found.text


def test_below_has_its_size_in_tokens_and_per_cent() -> None:
    [segment] = (report := held(spread(), "3.5")).segments
    m = segment.figures.mean_acceptance_length.value
    found = only(report)
    assert m is not None
    assert found.outcome == "below"
    assert found.difference_tokens == pytest.approx(m - 3.5)
    assert found.difference_share == pytest.approx((m - 3.5) / 3.5)
    assert f"{3.5 - m:.2f} tokens" in found.text


def test_above_is_told_too() -> None:
    found = only(held(spread(), "1.2"))
    assert found.outcome == "above"
    assert found.difference_tokens is not None
    assert found.difference_tokens > 0


def test_the_checklist_has_every_cause_in_one_order() -> None:
    assert len(CAUSES) == len(ORDER)
    for wanted in ("3.5", "1.2", "5.5,k=7", "3.9,k=7"):
        assert tuple(each.name for each in only(held(spread(), wanted)).causes) == ORDER


def test_what_differs_or_is_not_told_has_something_to_check_and_the_rest_has_not() -> None:
    wanted = "5.5,k=7,engine=sglang,dataset=mt-bench,temperature=0,model=org/Target-8B"
    records = spread(model="target-8b", temperature=0.0, dataset="gsm8k")
    found = causes(only(held(records, wanted)))
    assert {name: cause.status for name, cause in found.items()} == {
        "chat template": "not told",
        "quantisation": "not told",
        "K": "differs",
        "dataset": "differs",
        "engine": "differs",
        "sampling": "same",
        "target and drafter": "not told",
        "length and language": "not told",
        "counting": "not told",
    }
    for cause in found.values():
        assert (cause.check is None) == (cause.status in ("same", "ruled out"))
    assert "target: target-8b" in found["target and drafter"].detail
    assert "mt-bench" in found["dataset"].detail
    assert "philschmid/mt-bench" in (found["dataset"].check or "")


def test_a_card_of_a_larger_k_that_this_k_cannot_reach_is_not_compared() -> None:
    """A card's 5.5 at K = 7 cannot be reached at K = 3: at most 4."""
    found = only(held(spread(), "5.5"))
    assert found.outcome == "cannot be compared"
    assert found.difference_tokens is None
    assert "at most 4 tokens" in found.text
    assert "K ≥ 5" in causes(found)["K"].detail
    assert causes(found)["K"].status == "differs"


def test_a_larger_k_explains_at_most_the_last_survival_for_each_position() -> None:
    report = held(spread(), "5.5,k=7")
    [segment] = report.segments
    m = segment.figures.mean_acceptance_length.value
    last = segment.figures.positions[-1].survival.value
    assert m is not None
    assert last is not None
    found = only(report)
    assert found.outcome == "below"
    assert found.difference_tokens == pytest.approx(m + 4 * last - 5.5)
    detail = causes(found)["K"].detail
    assert f"at most {4 * last:.2f} of the {5.5 - m:.2f} tokens" in detail


def test_a_gap_that_k_could_explain_alone_is_not_called_below() -> None:
    found = only(held(spread(), "2.7,k=7"))
    assert found.outcome == "cannot be compared"
    assert "K alone could explain all" in causes(found)["K"].detail
    nearly = only(held(spread(), "2.9,k=7"))
    assert nearly.outcome == "cannot be compared"
    assert "the rest may be chance" in causes(nearly)["K"].detail


def test_no_larger_k_helps_where_no_step_accepts_a_whole_draft() -> None:
    found = causes(only(held(spread(k=7), "5.5")))
    assert found["K"].status == "ruled out"


def test_a_larger_k_than_the_card_is_cut() -> None:
    records = [record([1, 1, 1, 1, 10 + n]) for n in range(8)]
    found = only(held(records, "2.8,k=2"))
    assert found.outcome == "as expected"


def test_the_part_that_meets_the_expectation_is_named() -> None:
    made = held_against(build_acceptance_report(two_kinds(), sources=["a"]), read_expected("4.8"))
    assert "The part kind copy alone meets it with M = 5.00" in causes(only(made))["dataset"].detail
    far = held_against(build_acceptance_report(two_kinds(), sources=["a"]), read_expected("6,k=6"))
    assert only(far).outcome == "cannot be compared"
    assert "kind copy alone meets it with" not in causes(only(far))["dataset"].detail
    assert "kind copy alone may meet it, with M up to 7.00" in causes(only(far))["dataset"].detail
    parts = {each.values["kind"]: each.expected for each in made.segments}
    assert parts["write"] is not None
    assert parts["write"].outcome == "below"


def test_accepted_tokens_without_the_targets_own_are_recognised() -> None:
    records = [record([5, 5, 10, 20, 20, 40 + n]) for n in range(6)]
    report = held(records, "3.5")
    [segment] = report.segments
    m = segment.figures.mean_acceptance_length.value
    assert m is not None
    cause = causes(only(held(records, f"{m - 1:.2f}")))["counting"]
    assert cause.status == "differs"
    assert cause.detail.startswith("A/S")
    assert "probably count differently" in cause.detail


def test_counters_of_a_server_may_hold_its_warm_up() -> None:
    records = [record([40 + n, 3, 2, 1], scope=Scope.INTERVAL) for n in range(6)]
    cause = causes(only(held(records, "3.9")))["counting"]
    assert cause.status == "not told"
    assert "warm-up" in cause.detail
    of_answers = causes(only(held([record([40, 3, 2, 1])] * 6, "3.9")))["counting"]
    assert of_answers.status == "ruled out"


def test_a_broken_drafter_is_said_to_be_one_unless_it_looks_up() -> None:
    records = [record([98 + n, 2, 0, 0, 0, 0, 0, 0]) for n in range(6)]
    assert "broken drafter" in only(held(records, "3.3")).text
    lookups = [record([98 + n, 2, 0, 0, 0, 0, 0, 0], method="ngram") for n in range(6)]
    assert "broken drafter" not in only(held(lookups, "3.3")).text


def test_a_condition_that_by_did_not_keep_is_not_called_untold() -> None:
    records = spread(kind="a", temperature=0.0)
    cause = causes(only(held(records, "3.5,temperature=0", by=["kind"])))["sampling"]
    assert "not kept with --by" in cause.detail


def store(path: Path, records: Sequence[AcceptanceRecord]) -> str:
    made = build_acceptance_report(collected(records), sources=["a"])
    path.write_text(json.dumps(report_to_json(made)), encoding="utf-8")
    return str(path)


def test_a_report_agrees_with_itself(tmp_path: Path) -> None:
    name = store(tmp_path / "a.json", spread())
    assert only(held(spread(), name)).outcome == "as expected"


def test_the_same_drafter_on_another_engine_is_held_against_it(tmp_path: Path) -> None:
    there = [record([1, 1, 1, 1, 1, 2, 3, 20 + n], engine="sglang") for n in range(8)]
    name = store(tmp_path / "sglang.json", there)
    found = only(held(spread(k=7), name))
    assert found.outcome == "below"
    assert causes(found)["engine"].status == "differs"
    assert causes(found)["K"].status == "same"
    assert causes(found)["counting"].status == "same"


def test_a_stored_run_of_a_larger_k_is_cut_by_its_own_positions(tmp_path: Path) -> None:
    there = [record([4, 2, 2, 2, 2, 2, 2, 2]) for _ in range(8)]
    found = only(held([record([4, 2, 2, 10]) for _ in range(8)], store(tmp_path / "a.json", there)))
    assert found.outcome == "as expected"
    assert "with drafts cut to 3" in found.text


def test_a_stored_report_with_nothing_in_common_is_refused(tmp_path: Path) -> None:
    several = [*spread(engine_version="1"), *[record([4, 3, 2], model="b")] * 5]
    name = store(tmp_path / "a.json", [*several, *[record([4, 3, 2], model="c")] * 5])
    with pytest.raises(InvalidSetting, match="no segment of this report"):
        held([record([3, 3, 3, 3, 3], method="eagle3")] * 5, name)


def test_a_report_of_nothing_is_held_against_nothing() -> None:
    assert held([], "5.5").segments == ()


def test_json_has_it_per_segment_and_null_where_nothing_was_expected() -> None:
    plain = build_acceptance_report(collected(spread()), sources=["a"])
    assert report_to_json(plain)["segments"][0]["expected"] is None
    told = report_to_json(held_against(plain, read_expected("3.5")))["segments"][0]["expected"]
    assert told["outcome"] == "below"
    assert [cause["name"] for cause in told["causes"]] == list(ORDER)
