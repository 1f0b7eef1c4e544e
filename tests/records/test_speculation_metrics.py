import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from outrider.records.adapters.registry import adapter
from outrider.records.reading import AcceptanceRecord, Place
from outrider.records.request import StepRecord
from outrider.records.sources.document import JsonDocument
from outrider.records.speculation_metrics import Detail, speculation_metrics


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
