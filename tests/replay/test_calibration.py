"""The replay of what the engine said is what the engine did, step for step."""

import io
import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import httpx2
import numpy as np
import pytest
import torch
from tests.engine.loops import engine_of, finish, request
from tests.engine.models.configs import config_of
from tests.replay.answers import answer_of, check_counts

from outrider.engine.drafting.base import Drafter
from outrider.engine.drafting.lookup.suffix_settings import SuffixSettings
from outrider.engine.drafting.ngram import NgramDrafter
from outrider.engine.drafting.none import NoDrafter
from outrider.engine.drafting.suffix import SuffixDrafter
from outrider.engine.models.base import Rows
from outrider.engine.sampling import SamplingParameters
from outrider.records.request import StepRecord
from outrider.replay.answer import LoggedAnswer
from outrider.replay.batch import AnswerBatch
from outrider.replay.logs.reading import LogReader
from outrider.replay.lookup.base import LookupPass
from outrider.replay.lookup.ngram import NgramPass
from outrider.replay.lookup.suffix import SuffixPass
from outrider.replay.walk import Tally, tally

CASES = Path(__file__).parent / "cases"
VOCABULARY = 12
END = 11


class HabitualModel:
    """A target whose next token depends on the last one and, less, on the position."""

    logit_tolerance = 0.0
    num_blocks = 4_000
    max_length = 1_000

    def __init__(self, seed: int) -> None:
        self.config = config_of(vocab_size=VOCABULARY)
        generator = torch.Generator().manual_seed(seed)
        self.habits = 2.5 * torch.randn(VOCABULARY, VOCABULARY, generator=generator)
        self.moods = torch.randn(7, VOCABULARY, generator=generator)

    def forward(self, rows: Rows) -> torch.Tensor:
        tokens = torch.tensor(list(rows.token_ids))
        positions = torch.tensor(list(rows.positions))
        return (self.habits[tokens] + self.moods[positions % 7])[list(rows.wanted)]


Live = list[tuple[LoggedAnswer, list[StepRecord]]]


def live(
    drafter: Drafter,
    k: int,
    parameters: Callable[[int], SamplingParameters],
    requests: int,
    at_once: int = 8,
) -> Live:
    """Answers of the engine, some requests at a time, with the steps that they took."""
    generator = np.random.default_rng(0)
    engine, recorder = engine_of(HabitualModel(4), drafter, k)
    found: Live = []
    for start in range(0, requests, at_once):
        batch = [
            request(
                generator.integers(0, END, int(generator.integers(1, 30))).tolist(),
                int(generator.integers(1, 60)),
                f"r{each}",
                stop_ids=[END],
                parameters=parameters(each),
            )
            for each in range(start, min(start + at_once, requests))
        ]
        for one in batch:
            engine.add(one)
        finish(engine)
        for one in batch:
            output = one.output_token_ids.tolist()
            limit = one.most_tokens - one.prompt_tokens
            answer = answer_of(one.token_ids[: one.prompt_tokens].tolist(), output, limit)
            found.append((answer, recorder.take(one).steps))
    return found


def greedy(_: int) -> SamplingParameters:
    return SamplingParameters()


def random(seed: int) -> SamplingParameters:
    return SamplingParameters(1.0, seed)


def replayed(answers: list[LoggedAnswer], k: int, lookup: LookupPass) -> Tally:
    batch = AnswerBatch.of(answers)
    return tally(batch, lookup.runs(batch, (k,)), 0, k)


def check_steps(live_steps: Live, told: Tally) -> None:
    for place, (answer, made) in enumerate(live_steps):
        # What the engine accepted beyond a stop is in no log.
        check_counts(told, place, [(step.drafted, step.accepted_emitted) for step in made])
        assert sum(step.emitted for step in made) == len(answer.completion) - 1
    assert told.histograms[:, 1:].sum() > 50


@pytest.mark.parametrize("k", [1, 4, 9])
@pytest.mark.parametrize("parameters", [greedy, random], ids=["greedy", "random"])
def test_a_replay_of_the_engines_answers_makes_the_very_steps_that_it_made(
    k: int, parameters: Callable[[int], SamplingParameters]
) -> None:
    made = live(NgramDrafter(k, 1, 3), k, parameters, 60)
    check_steps(made, replayed([answer for answer, _ in made], k, NgramPass(1, 3, "recent")))


@pytest.mark.parametrize("cached", [0, 3, 10_000])
@pytest.mark.parametrize("parameters", [greedy, random], ids=["greedy", "random"])
def test_so_does_a_replay_of_suffix_decoding_where_one_request_follows_the_other(
    cached: int, parameters: Callable[[int], SamplingParameters]
) -> None:
    settings = SuffixSettings(max_cached_requests=cached)
    made = live(SuffixDrafter(6, settings), 6, parameters, 40, at_once=1)
    check_steps(made, replayed([answer for answer, _ in made], 6, SuffixPass(settings)))


def test_answers_drawn_without_speculation_replay_to_the_acceptance_of_a_live_run() -> None:
    k = 4
    made = live(NgramDrafter(k, 1, 3), k, random, 600)
    plain = live(NoDrafter(), 0, lambda seed: random(10_000 + seed), 600)
    told = replayed([answer for answer, _ in plain], k, NgramPass(1, 3, "recent"))
    live_steps = [[s for s in steps if s.drafted] for _, steps in made]
    for length in range(k + 1):
        replay_counts = told.histograms[:, length]
        live_counts = np.array([sum(s.accepted == length for s in steps) for steps in live_steps])
        error = np.sqrt(replay_counts.var() / 600 + live_counts.var() / 600)
        # Of five comparisons one in 3,000 runs of other seeds would fail.
        assert abs(replay_counts.mean() - live_counts.mean()) < 4 * error
    assert told.histograms.sum() > 3_000


def logged_in(name: str) -> list[LoggedAnswer]:
    with httpx2.Client() as http:
        found = LogReader().read([str(CASES / name)], stdin=io.BytesIO(), http=http)
        return [logged for _, logged in found if isinstance(logged, LoggedAnswer)]


def test_answers_of_a_real_model_replay_to_the_steps_of_its_live_runs() -> None:
    log = logged_in("smollm2.jsonl")
    live_steps = [
        json.loads(line) for line in (CASES / "smollm2-live.jsonl").read_text().splitlines()
    ]
    assert len(log) == len(live_steps) == 24
    for k in (1, 2, 4, 8):
        told = replayed(log, k, NgramPass(2, 5, "recent"))
        for place, each in enumerate(live_steps):
            check_counts(told, place, [*zip(*each["steps"][str(k)], strict=True)])


@pytest.mark.parametrize("name", ["vllm-0.32-ids.json", "vllm-0.32-ids.sse"])
def test_a_real_answer_of_vllm_replays_to_the_steps_that_it_told(name: str) -> None:
    [answer] = logged_in(name)
    metrics = json.loads((CASES / "vllm-0.32-ids.json").read_text())["metrics"]
    told_by_vllm = metrics["speculative_decoding"]
    # vLLM does not cut drafts to what fits max_tokens.
    told = replayed([replace(answer, max_tokens=None)], 3, NgramPass(1, 3, "earliest"))
    steps = zip(told_by_vllm["per_step_drafted"], told_by_vllm["per_step_accepted"], strict=True)
    check_counts(told, 0, [*steps])
