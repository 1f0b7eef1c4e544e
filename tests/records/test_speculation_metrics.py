import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from outrider.records.adapters.registry import adapter
from outrider.records.reading import AcceptanceRecord, Place
from outrider.records.request import StepRecord
from outrider.records.sources.document import JsonDocument
from outrider.records.speculation_metrics import Detail, speculation_metrics, vllm_would_tell

BODIES = Path(__file__).parent / "cases" / "vllm" / "bodies.jsonl"


def step(drafted: int, accepted: int, emitted: int | None = None, trimmed: int = 0) -> StepRecord:
    kept = accepted + 1 if emitted is None else emitted
    return StepRecord(drafted, accepted, kept, 0.1, 0.2, 0.4, trimmed)


def test_the_figures_of_the_reference_example() -> None:
    steps = [step(4, accepted) for accepted in (0, 1, 4, 1, 2)]
    found = speculation_metrics(steps, num_spec_tokens=4, detail="detailed")
    assert found["mean_acceptance_length"] == pytest.approx(2.6)
    assert found["draft_acceptance_rate"] == pytest.approx(0.4)
    assert found["acceptance_histogram"] == [1, 2, 1, 0, 1]
    assert found["per_step_accepted"] == [0, 1, 4, 1, 2]
    assert found["per_step_drafted"] == [4] * 5


def test_a_request_that_never_drafted_has_what_vllm_says_of_it() -> None:
    found = speculation_metrics([step(0, 0)], num_spec_tokens=2, detail="detailed")
    assert found["mean_acceptance_length"] == 1.0
    assert found["draft_acceptance_rate"] == 0.0
    assert found["acceptance_histogram"] == [0, 0, 0]
    assert found["per_step_accepted"] is None


def test_what_a_stop_cut_off_counts_as_accepted_and_not_as_delivered() -> None:
    found = speculation_metrics([step(4, 4, emitted=2)], num_spec_tokens=4, detail="summary")
    assert found["num_accepted_draft_tokens"] == 4
    assert found["num_accepted_emitted_tokens"] == 2


def test_trimmed_tokens_stand_beside_the_drafted_ones() -> None:
    steps = [step(1, 1, trimmed=3), step(0, 0, trimmed=4)]
    found = speculation_metrics(steps, num_spec_tokens=4, detail="summary")
    assert (found["num_draft_tokens"], found["num_trimmed_draft_tokens"]) == (1, 7)
    assert found["num_spec_steps"] == 1


def test_what_drafts_of_each_length_came_to_is_told_apart() -> None:
    steps = [step(3, 3), step(3, 0), step(1, 1), step(1, 0), step(1, 1), step(0, 0)]
    found = speculation_metrics(steps, num_spec_tokens=4, detail="summary")
    assert found["acceptance_histogram_by_draft_length"] == {"1": [1, 2], "3": [1, 0, 0, 1]}
    assert found["acceptance_histogram"] == [2, 2, 0, 1, 0]


def test_the_times_are_those_of_all_decode_steps_in_milliseconds() -> None:
    found = speculation_metrics([step(2, 1), step(0, 0)], num_spec_tokens=4, detail="summary")
    assert found["draft_time_ms"] == pytest.approx(200)
    assert found["verify_time_ms"] == pytest.approx(400)


def captured() -> list[dict[str, Any]]:
    """The objects of a real vLLM 0.32 server, told in detail."""
    bodies = (json.loads(line)["body"] for line in BODIES.read_text().splitlines())
    told = [(body.get("metrics") or {}).get("speculative_decoding") for body in bodies]
    return [each for each in told if each is not None and each["per_step_drafted"] is not None]


def test_strict_gives_the_very_objects_that_a_vllm_server_gave_for_the_same_steps() -> None:
    assert len(captured()) > 10
    for told in captured():
        lengths = zip(told["per_step_drafted"], told["per_step_accepted"], strict=True)
        steps = [step(drafted, accepted) for drafted, accepted in lengths]
        k = told["num_spec_tokens"]
        found = speculation_metrics(steps, num_spec_tokens=k, detail="detailed", strict=True)
        assert list(found.items()) == list(told.items())


@pytest.mark.parametrize("detail", ["summary", "detailed"])
def test_without_strict_the_same_fields_have_the_same_values(detail: Detail) -> None:
    steps = [step(2, 1), step(3, 3, emitted=1, trimmed=1)]
    strict = speculation_metrics(steps, num_spec_tokens=3, detail=detail, strict=True)
    full = speculation_metrics(steps, num_spec_tokens=3, detail=detail)
    assert {name: full[name] for name in strict} == strict
    assert set(full) - set(strict) == {
        "acceptance_histogram_by_draft_length",
        "num_accepted_emitted_tokens",
        "num_trimmed_draft_tokens",
        "num_invalidated_draft_tokens",
        "draft_time_ms",
        "verify_time_ms",
    }


@pytest.mark.parametrize(
    ("answers", "stopped_by", "told"),
    [(1, None, True), (1, 2, True), (2, None, False), (1, "END", False)],
    ids=["one answer", "a stop token", "several answers", "a stop string"],
)
def test_vllm_tells_nothing_of_several_answers_or_after_a_stop_string(
    answers: int, stopped_by: int | str | None, told: bool
) -> None:
    assert vllm_would_tell(answers=answers, stopped_by=stopped_by) is told


@given(
    st.lists(st.tuples(st.integers(1, 5), st.integers(0, 5)), min_size=1, max_size=30),
    st.sampled_from(["summary", "detailed"]),
)
def test_what_reads_vllms_answers_reads_ours(
    lengths: list[tuple[int, int]], detail: Detail
) -> None:
    steps = [step(drafted, min(drafted, accepted)) for drafted, accepted in lengths]
    metrics = speculation_metrics(steps, num_spec_tokens=5, detail=detail)
    tokens = 1 + sum(each.emitted for each in steps)
    body = {
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "model": "m",
        "choices": [{"index": 0, "message": {"content": "x"}, "finish_reason": "length"}],
        "usage": {"prompt_tokens": 3, "completion_tokens": tokens, "total_tokens": tokens + 3},
        "metrics": {"speculative_decoding": json.loads(json.dumps(metrics))},
    }
    document = JsonDocument(Place("answers.jsonl", 1), body)
    [(_, record)] = adapter("vllm").convert(document)
    assert isinstance(record, AcceptanceRecord)
    assert (record.steps, record.drafted) == (len(steps), sum(each.drafted for each in steps))
    assert record.accepted == sum(each.accepted for each in steps)
    assert list(record.histogram or ()) == metrics["acceptance_histogram"]
    table = record.draft_table
    assert table is not None
    by_drafted = [sum(drafted == length for drafted, _ in lengths) for length in range(6)]
    assert [sum(row) for row in table] == by_drafted
