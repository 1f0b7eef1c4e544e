import itertools
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path
from types import TracebackType
from typing import Self

import pytest

from outrider.bench.plan import ngram_arms
from outrider.bench.session import Progress, Session
from outrider.bench.workload import Message, Prompt
from outrider.engine.models.base import Rows
from outrider.engine.models.registry import load_model
from outrider.engine.models.settings import ModelSettings
from outrider.engine.tokenizer import Tokenizer
from outrider.errors import UnwritableOutput
from outrider.records.evidence import Evidence
from outrider.records.evidence_reader import read_evidence
from outrider.records.request import FinishReason, Phase
from outrider.records.run import RunSettings
from outrider.report.run.as_json import document_to_json
from outrider.report.run.document import build_document

PROMPTS = tuple(
    Prompt(name, kind, (Message("user", text),), max_tokens)
    for name, kind, text, max_tokens in (
        ("one", "chat", "the cat sat on the cat", 24),
        ("two", "copy", "Copy: one two three one two", 30),
        ("three", "copy", "x = 1; y = 2", 12),
    )
)
ENGINE = ModelSettings(backend="torch", dtype="float32", threads=1)


class Counting:
    """A progress display that counts, and interrupts after `limit` requests."""

    def __init__(self, limit: int | None) -> None:
        self.limit = limit
        self.planned = self.done_before = self.advanced = 0
        self.open = False

    def begin(self, planned: int, done: int) -> AbstractContextManager[Progress]:
        self.planned, self.done_before = planned, done
        return self

    def advance(self) -> None:
        assert self.open
        self.advanced += 1
        if self.advanced == self.limit:
            raise KeyboardInterrupt

    def __enter__(self) -> Self:
        self.open = True
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.open = False


@pytest.fixture
def settings(tiny_model: Path) -> RunSettings:
    return RunSettings(
        model=str(tiny_model),
        workload="three",
        workload_sha256="cd" * 32,
        arms=ngram_arms((1, 3), lookup_min=1, lookup_max=3, tie="recent"),
        repeats=2,
        seed=11,
        temperature=0.0,
        dtype="float32",
        threads=1,
        max_tokens=28,
        smoke=False,
    )


@pytest.fixture
def said() -> list[str]:
    return []


StartSession = Callable[..., Session]


@pytest.fixture
def session(settings: RunSettings, tmp_path: Path, said: list[str]) -> StartSession:
    def make(
        counting: Counting | None = None,
        earlier: Evidence | None = None,
        time_limit_s: float | None = None,
    ) -> Session:
        return Session(
            path=tmp_path / "run.duckdb",
            settings=settings,
            prompts=PROMPTS if earlier is None else (),
            earlier=earlier,
            engine=ENGINE,
            time_limit_s=time_limit_s,
            say=said.append,
            progress=(counting or Counting(None)).begin,
            clock=itertools.count(0.0, 1e-3).__next__,
        )

    return make


@pytest.fixture
def greedy_answers(tiny_model: Path) -> dict[str, tuple[int, ...]]:
    """What no speculation has to answer: the argmax after a whole forward pass for each token."""
    model = load_model(tiny_model, ENGINE.with_room(256))
    tokenizer = Tokenizer(tiny_model)
    answers = {}
    for prompt in PROMPTS:
        token_ids = tokenizer.encode_chat(prompt.chat)
        start = len(token_ids)
        while len(token_ids) < start + min(28, prompt.max_tokens) and token_ids[-1] != 256:
            count = len(token_ids)
            logits = model.forward(
                Rows(token_ids, range(count), [0] * count, [range(8)], [count - 1])
            )
            token_ids.append(int(logits.argmax()))
        answers[prompt.prompt_id] = tuple(token_ids[start:])
    return answers


def test_a_new_run_leaves_all_that_was_asked_for(
    session: StartSession,
    settings: RunSettings,
    tmp_path: Path,
    greedy_answers: dict[str, tuple[int, ...]],
) -> None:
    counting = Counting(None)
    assert session(counting).run()
    evidence = read_evidence(tmp_path / "run.duckdb")
    assert evidence.settings == settings
    assert evidence.complete
    assert evidence.divergences == ()
    assert [prompt.prompt_id for prompt in evidence.prompts] == ["one", "two", "three"]
    assert [prompt.max_tokens for prompt in evidence.prompts] == [24, 28, 12]
    assert len(evidence.measured) == 3 * 3 * 2
    for request in evidence.measured:
        assert request.output_token_ids == greedy_answers[request.prompt_id]
        assert request.decode_tokens == len(request.output_token_ids) - 1
        assert request.finish_reason is FinishReason.LENGTH
    steps = [step for each in evidence.measured if each.arm != "none" for step in each.steps]
    assert 0 < sum(step.accepted for step in steps) < sum(step.drafted for step in steps)
    [environment] = evidence.environments
    assert (environment.backend, environment.threads) == ("torch", 1)
    assert environment.model.source == "path"
    assert (counting.planned, counting.done_before, counting.advanced) == (18, 0, 18)


def test_warm_up_is_in_the_file_and_in_no_figure(session: StartSession, tmp_path: Path) -> None:
    session().run()
    evidence = read_evidence(tmp_path / "run.duckdb")
    warm_up = [request for request in evidence.requests if request.phase is Phase.WARMUP]
    assert warm_up
    document = build_document(evidence)
    assert document.finished_requests == 18
    steps = sum(len(request.steps) for request in evidence.measured)
    summaries = document.comparison.segments[0].summaries
    assert sum(summary.decode_steps for summary in summaries) == steps


def test_an_interrupted_run_resumed_gives_what_one_run_would(
    session: StartSession, tmp_path: Path
) -> None:
    path = tmp_path / "run.duckdb"
    with pytest.raises(KeyboardInterrupt):
        session(Counting(7)).run()
    half = read_evidence(path)
    assert len(half.measured) == 7

    counting = Counting(None)
    assert session(counting, earlier=half).run()
    assert (counting.planned, counting.done_before, counting.advanced) == (18, 7, 11)
    resumed = read_evidence(path)
    assert resumed.complete
    assert resumed.measured[:7] == half.measured
    assert len(resumed.measured) == 18
    assert len(resumed.environments) == 2

    path.unlink()
    session().run()
    whole = read_evidence(path)
    assert [(each.arm, each.prompt_id, each.repeat) for each in resumed.measured] == [
        (each.arm, each.prompt_id, each.repeat) for each in whole.measured
    ]


def test_a_complete_run_resumed_reports_the_same_figures(
    session: StartSession, tmp_path: Path
) -> None:
    path = tmp_path / "run.duckdb"
    session().run()
    first = read_evidence(path)
    assert session(earlier=first).run()
    again = read_evidence(path)
    assert again.requests == first.requests
    reported, once_more = (document_to_json(build_document(each)) for each in (first, again))
    for part in ("audit", "comparison", "findings", "deployments"):
        assert reported[part] == once_more[part]


def test_the_time_limit_leaves_a_run_to_resume(session: StartSession, tmp_path: Path) -> None:
    assert not session(time_limit_s=0.5).run()
    evidence = read_evidence(tmp_path / "run.duckdb")
    assert 0 < len(evidence.measured) < 18
    assert session(earlier=evidence).run()
    assert read_evidence(tmp_path / "run.duckdb").complete


def test_an_existing_file_is_never_written_over(session: StartSession, tmp_path: Path) -> None:
    (tmp_path / "run.duckdb").write_text("mine")
    with pytest.raises(UnwritableOutput):
        session().run()
    assert (tmp_path / "run.duckdb").read_text() == "mine"


def test_each_slow_thing_is_announced(session: StartSession, said: list[str]) -> None:
    session().run()
    assert [line.split()[0] for line in said] == ["loading", "warming"]
