"""The log of answers: kept as it was, and sound where it was cut."""

import io
from dataclasses import replace
from pathlib import Path

import httpx2
import numpy as np
import pytest

from outrider.errors import CorruptFile
from outrider.replay.answer import LoggedAnswer
from outrider.replay.logs.reading import LogReader
from outrider.training.answer import TargetAnswer
from outrider.training.work_folder import WorkFolder

ANSWER = TargetAnswer(
    answer_id="p0#1",
    prompt_id="p0",
    kind="chat",
    held_out=False,
    temperature=0.5,
    seed=1,
    max_tokens=3,
    finish_reason="length",
    prompt=np.array([1, 2, 3], np.int32),
    completion=np.array([4, 5, 6], np.int32),
    top_ids=np.array([[4, 1], [5, 1], [6, 1]], np.int32),
    top_logprobs=np.array([[-0.5, -1.5], [-0.25, -2], [-0.125, -3]], np.float32),
)


@pytest.fixture
def work(tmp_path: Path) -> WorkFolder:
    folder = WorkFolder(tmp_path / "draft")
    folder.begin({})
    return folder


def same(one: TargetAnswer, other: TargetAnswer) -> bool:
    return one.to_line() == other.to_line() and one.top_ids.shape == other.top_ids.shape


def test_an_answer_reads_back_as_it_was() -> None:
    assert same(TargetAnswer.of_line(ANSWER.to_line(), "here"), ANSWER)


def test_an_answer_without_top_tokens_has_none_of_them_at_each_position() -> None:
    empty = np.zeros((3, 0), np.int32)
    held = replace(ANSWER, top_ids=empty, top_logprobs=empty.astype(np.float32))
    assert TargetAnswer.of_line(held.to_line(), "here").top_ids.shape == (3, 0)


def test_replay_reads_the_log(work: WorkFolder) -> None:
    work.keep_answers().append([ANSWER.to_line()])
    with httpx2.Client() as http:
        [(_, answer)] = LogReader().read([str(work.answers)], stdin=io.BytesIO(), http=http)
    assert isinstance(answer, LoggedAnswer)
    assert answer.prompt.tolist() == [1, 2, 3]
    assert answer.completion.tolist() == [4, 5, 6]
    assert answer.max_tokens == 3
    assert answer.tags["kind"] == "chat"


def test_a_line_that_was_cut_short_is_made_again(work: WorkFolder) -> None:
    whole = ANSWER.to_line() + "\n"
    work.answers.write_text(whole + whole[:40])
    assert len(work.read_answers()) == 1
    assert work.answers.read_text() == whole


def test_a_line_of_another_kind_is_named(work: WorkFolder) -> None:
    work.answers.write_text(f"{ANSWER.to_line()}\n{{}}\n")
    with pytest.raises(CorruptFile, match=r"answers\.jsonl line 2 is no answer of a target"):
        work.read_answers()
