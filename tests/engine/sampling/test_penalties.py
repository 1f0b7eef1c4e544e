import numpy as np
import pytest
import torch
from transformers import RepetitionPenaltyLogitsProcessor

from outrider.engine.sampling import SamplingParameters
from outrider.engine.sampling.history import History
from outrider.engine.sampling.penalties import Penalties


def history(prompt: list[int], output: list[int], drafted: list[int]) -> History:
    return History(*(np.array(each, np.int32) for each in (prompt, output, drafted)))


def penalised(rows: torch.Tensor, past: History, **penalties: float) -> torch.Tensor:
    changed = rows.clone()
    Penalties(SamplingParameters(**penalties)).apply(changed, past)  # type: ignore[arg-type]
    return changed


def test_presence_is_taken_once_and_frequency_each_time() -> None:
    past = history([0], [2, 2, 3], [3, 1])
    presence = penalised(torch.zeros(3, 4), past, presence_penalty=0.5)
    assert presence.tolist() == [[0, 0, -0.5, -0.5], [0, 0, -0.5, -0.5], [0, -0.5, -0.5, -0.5]]
    frequency = penalised(torch.zeros(3, 4), past, frequency_penalty=0.5)
    assert frequency.tolist() == [[0, 0, -1, -0.5], [0, 0, -1, -1], [0, -0.5, -1, -1]]


def test_the_repetition_penalty_comes_first() -> None:
    rows = torch.tensor([[4.0, -4.0, 4.0]])
    both = penalised(rows, history([0], [1], []), repetition_penalty=2.0, frequency_penalty=1.0)
    assert both.tolist() == [[2, -9, 4]]


def test_the_repetition_penalty_is_that_of_transformers() -> None:
    rows = torch.randn(4, 20, generator=torch.Generator().manual_seed(0))
    prompt, output, drafted = [3, 4, 4], [5, 3], [6, 7, 6]
    changed = penalised(rows, history(prompt, output, drafted), repetition_penalty=1.3)
    oracle = RepetitionPenaltyLogitsProcessor(1.3)
    for i, row in enumerate(rows):
        past = torch.tensor([[*prompt, *output, *drafted[:i]]])
        torch.testing.assert_close(changed[i], oracle(past, row.unsqueeze(0))[0])


def test_the_counts_keep_up_with_an_output_that_grows_and_forget_drafts() -> None:
    generator = np.random.default_rng(0)
    parameters = SamplingParameters(
        repetition_penalty=1.2, presence_penalty=-0.3, frequency_penalty=0.4
    )
    lasting = Penalties(parameters)
    prompt, output = generator.integers(0, 300, 20).tolist(), list[int]()
    for _ in range(30):
        drafted = generator.integers(-1, 300, generator.integers(0, 6)).tolist()
        rows = torch.from_numpy(generator.normal(size=(len(drafted) + 1, 300))).float()
        expected = rows.clone()
        Penalties(parameters).apply(expected, history(prompt, output, drafted))
        lasting.apply(rows, history(prompt, output, drafted))
        torch.testing.assert_close(rows, expected, rtol=0, atol=0)
        output += generator.integers(0, 300, generator.integers(1, 6)).tolist()


def test_a_token_that_was_taken_back_counts_for_nothing() -> None:
    changed = penalised(torch.zeros(2, 3), history([0], [1], [-1]), presence_penalty=1.0)
    assert changed[1].tolist() == pytest.approx([0, -1, 0])
