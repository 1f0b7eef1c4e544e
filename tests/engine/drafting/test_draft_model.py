import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from tests.engine.drafting.own import Judge, MostlyRight, drafter_of, free, random_prompt
from tests.engine.loops import VOCABULARY, RememberingModel, engine_of, finish, request

from outrider.engine.models.base import BLOCK_TOKENS as BLOCK
from outrider.engine.models.base import Rows
from outrider.engine.sampling import SamplingParameters
from outrider.engine.scheduling.limits import Limits

K = 4


def limit(*tokens: int) -> NDArray[np.int64]:
    return np.array(tokens, np.int64)


def test_a_target_that_drafts_for_itself_is_always_right() -> None:
    drafter = drafter_of(RememberingModel(40))
    engine, recorder = engine_of(RememberingModel(40), drafter, K)
    sequences = [request(random_prompt(50 + 9 * i, i), 21, f"r{i}") for i in range(6)]
    for sequence in sequences:
        engine.add(sequence)
    finish(engine)
    for sequence in sequences:
        steps = recorder.take(sequence).steps
        assert [step.drafted for step in steps] == [K] * 4
        assert [step.accepted for step in steps] == [K] * 4
        prompt = sequence.token_ids[: sequence.prompt_tokens].tolist()
        assert sequence.output_token_ids.tolist() == RememberingModel.answer(prompt, 21)
    assert free(drafter)


def test_it_drafts_what_its_model_says_each_sequence_as_far_as_its_limit() -> None:
    drafter = drafter_of(RememberingModel(40))
    prompts = [random_prompt(20 + i, i) for i in range(4)]
    batch = [request(prompt, 30, f"r{i}") for i, prompt in enumerate(prompts)]
    draft = drafter.propose(batch, limit(2, 0, 5, 1))
    assert draft.lengths.tolist() == [2, 0, 5, 1]
    assert draft.probabilities is None
    for prompt, tokens, length in zip(prompts, draft.tokens, draft.lengths, strict=True):
        assert tokens[:length].tolist() == RememberingModel.answer(prompt, int(length))
        assert set(tokens[length:].tolist()) <= {-1}


def test_where_nobody_may_have_a_draft_nothing_is_computed() -> None:
    model = RememberingModel(40)
    draft = drafter_of(model).propose([request([1, 2], 9)], limit(0))
    assert draft.lengths.tolist() == [0]
    assert model.rows == 0


@pytest.mark.parametrize(
    ("right", "rows"),
    # The last drafted token was never computed: after a whole draft it is missing too.
    [(0, 1), (1, 1), (K - 1, 1), (K, 2)],
)
def test_a_step_computes_what_is_new_and_no_accepted_token_twice(right: int, rows: int) -> None:
    model = RememberingModel(40)
    drafter = drafter_of(model)
    sequence = request(random_prompt(30), 50)
    drafted = drafter.propose([sequence], limit(K)).tokens[0].tolist()
    assert model.rows == 30 + K - 1
    other = (drafted[right] + 1) % VOCABULARY if right < K else 0
    sequence.append([*drafted[:right], other])
    draft = drafter.propose([sequence], limit(K))
    assert model.rows == 30 + 2 * (K - 1) + rows
    assert draft.tokens[0].tolist() == RememberingModel.answer(sequence.token_ids.tolist(), K)


def test_a_draft_that_was_cut_and_guessed_on_rightly_still_leaves_a_token_to_compute() -> None:
    drafter = drafter_of(RememberingModel(40))
    sequence = request(random_prompt(30), 50)
    drafted = drafter.propose([sequence], limit(K)).tokens[0].tolist()
    sequence.append(drafted[:2])  # one accepted, and the bonus token is what was drafted next
    draft = drafter.propose([sequence], limit(K))
    assert draft.tokens[0].tolist() == RememberingModel.answer(sequence.token_ids.tolist(), K)


def test_a_long_prompt_is_read_in_parts_while_others_have_their_drafts() -> None:
    model = RememberingModel(40)
    drafter = drafter_of(model, max_rows=50)
    long, short = request(random_prompt(120), 20, "long"), request([1, 2, 3], 20, "short")
    lengths = []
    for _ in range(4):
        draft = drafter.propose([long, short], limit(2, 2))
        lengths.append(draft.lengths.tolist())
        short.append(RememberingModel.answer(short.token_ids.tolist(), 1))
    assert lengths == [[0, 2], [0, 2], [2, 2], [2, 2]]


@pytest.mark.parametrize("max_rows", [7, 64, 1_000])
def test_answers_are_the_targets_whatever_a_pass_may_compute(max_rows: int) -> None:
    drafter = drafter_of(MostlyRight(60), max_rows=max_rows)
    engine, recorder = engine_of(RememberingModel(60), drafter, K, limits=Limits(4, 100))
    sequences = [request(random_prompt(90, i), 60, f"r{i}") for i in range(9)]
    for sequence in sequences:
        engine.add(sequence)
    finish(engine)
    accepted = drafted = 0
    for i, sequence in enumerate(sequences):
        expected = RememberingModel.answer(random_prompt(90, i), 60)
        assert sequence.output_token_ids.tolist() == expected
        accepted += sum(step.accepted for step in recorder.take(sequence).steps)
        drafted += sum(step.drafted for step in recorder.take(sequence).steps)
    assert accepted > 0
    assert free(drafter)


def test_without_room_in_its_cache_a_sequence_has_no_draft_and_goes_on() -> None:
    drafter = drafter_of(RememberingModel(2))
    first, second = request(random_prompt(90), 20, "a"), request(random_prompt(70), 20, "b")
    draft = drafter.propose([first, second], limit(3, 3))
    assert draft.lengths.tolist() == [3, 0]
    drafter.forget(first)
    assert drafter.propose([second], limit(3)).lengths.tolist() == [3]
    drafter.forget(second)
    assert free(drafter)


def test_who_takes_no_part_gives_its_room_to_those_who_do() -> None:
    drafter = drafter_of(RememberingModel(2))
    waiting, running = request(random_prompt(90), 20, "a"), request(random_prompt(70), 20, "b")
    drafter.propose([waiting], limit(3))
    assert drafter.propose([running], limit(3)).lengths.tolist() == [3]
    draft = drafter.propose([waiting], limit(3))
    assert draft.tokens[0].tolist() == RememberingModel.answer(random_prompt(90), 3)


def test_no_draft_reaches_beyond_the_length_that_its_model_has() -> None:
    drafter = drafter_of(RememberingModel(40, max_length=32))
    batch = [request(random_prompt(count), 40, str(count)) for count in (28, 30, 32, 33, 60)]
    # The last drafted token is not computed, so that 32 tokens may be followed by one.
    assert drafter.propose(batch, limit(*[4] * 5)).lengths.tolist() == [4, 3, 1, 0, 0]


def test_equal_beginnings_are_computed_once() -> None:
    model = RememberingModel(40)
    drafter = drafter_of(model, prefix_caching=True)
    prompt = random_prompt(2 * BLOCK + 5)
    drafter.propose([request(prompt, 9, "a")], limit(1))
    assert model.rows == len(prompt)
    draft = drafter.propose([request([*prompt, 7], 9, "b")], limit(2))
    assert model.rows == len(prompt) + 6 + 1
    assert draft.tokens[0].tolist() == RememberingModel.answer([*prompt, 7], 2)


def test_cancelled_and_finished_requests_leave_nothing_behind() -> None:
    drafter = drafter_of(RememberingModel(40))
    engine, _ = engine_of(RememberingModel(40), drafter, K)
    for i in range(3):
        engine.add(request(random_prompt(40, i), 30, f"r{i}"))
    for _ in range(3):
        engine.step()
    assert not free(drafter)
    engine.cancel("r1")
    engine.cancel("r1")
    finish(engine)
    assert free(drafter)


class SoftModel(RememberingModel):
    """Logits that depend on all that came before, and on nothing else."""

    def forward(self, rows: Rows) -> torch.Tensor:
        chosen = super().forward(rows).argmax(dim=-1, keepdim=True)
        return torch.cos(chosen * 1.7 + torch.arange(VOCABULARY) * (1 + chosen % 5)) * 2


def test_drawn_tokens_have_the_q_that_they_were_drawn_from() -> None:
    drafter = drafter_of(SoftModel(40), "probabilistic", judge=Judge())
    asked = [SamplingParameters(0.7, 1, top_k=2), SamplingParameters(), SamplingParameters(1.5, 2)]
    batch = [request(random_prompt(9, i), 20, f"{i}", parameters=p) for i, p in enumerate(asked)]
    draft = drafter.propose(batch, limit(3, 2, 3))
    q = draft.probabilities
    assert q is not None
    assert q.shape == (3, 3, VOCABULARY)
    reference = SoftModel(40)
    for row, (sequence, parameters) in enumerate(zip(batch, asked, strict=True)):
        for position in range(int(draft.lengths[row])):
            history = [*sequence.token_ids.tolist(), *draft.tokens[row, :position].tolist()]
            rows = Rows(history, range(len(history)), [0] * len(history), [[0]], [len(history) - 1])
            logits = reference.forward(rows)[0]
            if parameters.greedy:
                expected = torch.nn.functional.one_hot(logits.argmax(), VOCABULARY).float()
            else:
                expected = (logits / parameters.temperature).softmax(-1)
            torch.testing.assert_close(q[row, position], expected)
            scaled = (logits / (parameters.temperature or 1)).softmax(-1).double()
            odds = float(scaled.max() / (1 - scaled.max()))
            assert draft.log_odds is not None
            assert draft.log_odds[row, position] == pytest.approx(np.log(odds), abs=1e-4)


def test_greedy_requests_alone_need_no_q() -> None:
    drafter = drafter_of(SoftModel(40), "probabilistic", judge=Judge())
    assert drafter.propose([request([1, 2], 9)], limit(3)).probabilities is None


class BrokenAfter(RememberingModel):
    """A draft model whose logits are no numbers after token 7."""

    def forward(self, rows: Rows) -> torch.Tensor:
        logits = super().forward(rows)
        after = np.array(list(rows.token_ids))[list(rows.wanted)]
        logits[torch.from_numpy(after == 7)] = float("nan")
        return logits


@pytest.mark.parametrize("temperature", [0.0, 1.0])
def test_a_broken_model_ends_drafts_and_no_request(temperature: float) -> None:
    drafter = drafter_of(BrokenAfter(40), "probabilistic")
    engine, recorder = engine_of(RememberingModel(40), drafter, K)
    parameters = SamplingParameters(temperature, 5)
    sequence = request([7], 200, parameters=parameters)
    engine.add(sequence)
    assert finish(engine)["r"].value == "length"
    drafted = [step.drafted for step in recorder.take(sequence).steps]
    assert {0, K} <= set(drafted)


def test_a_drafter_that_nobody_asks_how_sure_it_is_drafts_the_same() -> None:
    judged, not_judged = drafter_of(SoftModel(40), judge=Judge()), drafter_of(SoftModel(40))
    batch = [request(random_prompt(9, i), 20, f"{i}") for i in range(3)]
    told, drafted = (each.propose(batch, limit(3, 2, 3)) for each in (judged, not_judged))
    assert told.tokens.tolist() == drafted.tokens.tolist()
    assert told.log_odds is not None
    assert drafted.log_odds is None


def test_a_draft_ends_where_the_judge_does_not_go_on_with_it() -> None:
    judge = Judge(on=[True, False, True, True])
    model = RememberingModel(40)
    drafter = drafter_of(model, judge=judge)
    batch = [request(random_prompt(9, i), 20, f"{i}") for i in range(4)]
    draft = drafter.propose(batch, limit(4, 4, 0, 2))
    assert draft.lengths.tolist() == [4, 1, 0, 2]
    for row, sequence in enumerate(batch):
        answer = RememberingModel.answer(sequence.token_ids.tolist(), 4)
        length = int(draft.lengths[row])
        assert draft.tokens[row, :length].tolist() == answer[:length]
    assert judge.asked == [
        ([1, 1, 0, 1], [4, 4, 0, 2]),
        ([2, 1, 0, 2], [4, 1, 0, 2]),
        ([3, 1, 0, 2], [4, 1, 0, 2]),
    ]


def test_what_is_not_gone_on_with_costs_no_pass() -> None:
    model = RememberingModel(40)
    drafter_of(model, judge=Judge(on=[False])).propose([request([1, 2], 9)], limit(4))
    assert model.rows == 2  # those of the prompt


def test_the_judge_is_not_asked_where_tokens_are_drawn() -> None:
    judge = Judge(on=[False])
    drafter = drafter_of(SoftModel(40), "probabilistic", judge=judge)
    drawn = request([1, 2], 9, parameters=SamplingParameters(1.0, 3))
    assert drafter.propose([drawn], limit(3)).lengths.tolist() == [3]
    assert judge.asked == []
    greedy = request([1, 2], 9, "greedy")
    assert drafter.propose([greedy], limit(3)).lengths.tolist() == [1]
