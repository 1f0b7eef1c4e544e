"""Windows, batches, the loss, the reduced embedding, the schedule: each against an oracle."""

from collections import Counter
from itertools import islice

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch.nn import functional

from outrider.errors import InvalidSetting
from outrider.training.answer import TargetAnswer
from outrider.training.embedding import reduced_embedding
from outrider.training.estimate import walk
from outrider.training.examples import Batch, Example, batches_from
from outrider.training.fitting import learning_rate
from outrider.training.loss import distillation_loss
from outrider.training.settings import AnswerSettings, DraftShape, FitSettings


def example(prompt: int, completion: int, window: int | None = None, first: int = 1) -> Example:
    tokens = np.arange(first, first + prompt + completion, dtype=np.int32)
    said = tokens[prompt:]
    return Example.of(
        TargetAnswer(
            answer_id="a",
            prompt_id="p",
            kind="k",
            held_out=False,
            temperature=0,
            seed=None,
            max_tokens=99,
            finish_reason="stop",
            prompt=tokens[:prompt],
            completion=said,
            top_ids=np.stack([said, said + 1], axis=1),
            top_logprobs=np.log(np.tile(np.array([0.6, 0.2], np.float32), (completion, 1))),
        ),
        window,
    )


def test_a_window_takes_the_end_of_a_prompt_and_the_whole_answer() -> None:
    cut = example(10, 4, window=6)
    assert cut.tokens.tolist() == [9, 10, 11, 12, 13, 14]
    assert cut.start == 2


def test_an_answer_longer_than_the_window_keeps_its_beginning_and_a_token_of_the_prompt() -> None:
    cut = example(10, 8, window=4)
    assert cut.tokens.tolist() == [10, 11, 12, 13]
    assert cut.top_ids[:, 0].tolist() == [11, 12, 13]


def test_each_row_of_a_batch_is_to_say_what_follows_it() -> None:
    batch = Batch.of([example(3, 2), example(1, 5, first=50)])
    flat = batch.token_ids.flatten()
    assert (flat[batch.predicting] + 1).tolist() == batch.said.tolist()
    assert batch.said.tolist() == [4, 5, 51, 52, 53, 54, 55]
    torch.testing.assert_close(batch.top[0], torch.tensor([0.75, 0.25]))


def epoch_of(examples: list[Example], seed: int, count: int) -> list[list[int]]:
    found = batches_from(examples, batch_tokens=40, seed=seed)
    return [batch.token_ids[:, 0].tolist() for batch in islice(found, count)]


def test_every_epoch_has_each_example_once_in_batches_of_no_more_rows_than_asked() -> None:
    examples = [example(2, 1 + n % 9, first=1 + n) for n in range(30)]
    seen: Counter[int] = Counter()
    for batch in batches_from(examples, batch_tokens=40, seed=0):
        assert batch.token_ids.numel() <= 40
        seen.update(batch.token_ids[:, 0].tolist())
        if sum(seen.values()) == 60:
            break
    assert seen == dict.fromkeys(range(1, 31), 2)


def test_batches_follow_the_seed_and_can_be_taken_up_anywhere() -> None:
    examples = [example(2, 1 + n % 9, first=1 + n) for n in range(30)]
    assert epoch_of(examples, 0, 25) == epoch_of(examples, 0, 25)
    assert epoch_of(examples, 0, 25) != epoch_of(examples, 1, 25)
    later = batches_from(examples, batch_tokens=40, seed=0, first=20)
    assert [b.token_ids[:, 0].tolist() for b in islice(later, 5)] == epoch_of(examples, 0, 25)[20:]


@pytest.mark.parametrize("soft_weight", [0.0, 0.3, 1.0])
def test_the_loss_is_a_cross_entropy_with_both_kinds_of_labels(soft_weight: float) -> None:
    batch = Batch.of([example(3, 2), example(1, 5, first=50)])
    logits = torch.randn(7, 60, generator=torch.Generator().manual_seed(0))
    labels = torch.zeros(7, 60)
    for row in range(7):
        labels[row, batch.said[row]] += 1 - soft_weight
        for token, share in zip(batch.top_ids[row], batch.top[row], strict=True):
            labels[row, token] += soft_weight * share
    torch.testing.assert_close(
        distillation_loss(logits, batch, soft_weight), functional.cross_entropy(logits, labels)
    )


def test_a_reduced_embedding_is_the_truncated_decomposition_of_the_weighted_rows() -> None:
    generator = torch.Generator().manual_seed(0)
    rows = torch.randn(40, 8, generator=generator, dtype=torch.float64)
    counts = torch.randint(0, 9, (40,), generator=generator)
    reduced = reduced_embedding(rows, counts, 3)
    weights = (counts + 0.1).sqrt().unsqueeze(1)
    values = torch.linalg.svdvals(rows * weights)
    lost = rows.pow(2).sum(1) - reduced.rows.double().pow(2).sum(1)
    assert (lost > -1e-5).all()
    assert float((lost * weights[:, 0] ** 2).sum()) == pytest.approx(float((values[3:] ** 2).sum()))
    expected = float((values[:3] ** 2).sum() / (values**2).sum())
    assert reduced.kept_share == pytest.approx(expected)


def test_an_embedding_that_is_not_reduced_keeps_all_products_of_rows() -> None:
    rows = torch.randn(20, 4, generator=torch.Generator().manual_seed(0))
    reduced = reduced_embedding(rows, torch.ones(20), 6)
    assert reduced.rows.shape == (20, 6)
    torch.testing.assert_close(reduced.rows @ reduced.rows.T, rows @ rows.T)


def steps_token_by_token(hits: list[bool], k: int, max_tokens: int) -> list[tuple[int, int]]:
    """The same as `walk`, as an engine would go."""
    steps, output = [], 1
    while output < len(hits):
        drafted = min(k, max_tokens - output - 1)
        accepted = 0
        while accepted < drafted and output + accepted < len(hits) and hits[output + accepted]:
            accepted += 1
        if drafted:
            steps.append((accepted, drafted))
        output += accepted + 1
    return steps


@given(st.lists(st.booleans(), min_size=1, max_size=30), st.integers(1, 6), st.integers(0, 5))
def test_a_walk_takes_the_steps_that_an_engine_would(hits: list[bool], k: int, spare: int) -> None:
    most = len(hits) + spare
    assert walk(np.array(hits), k, most) == steps_token_by_token(hits, k, most)


def test_the_learning_rate_rises_to_its_peak_and_falls_to_a_tenth() -> None:
    settings = FitSettings(steps=100, warmup_steps=10, learning_rate=1.0)
    rates = [learning_rate(step, settings) for step in range(100)]
    assert rates[0] == pytest.approx(0.1)
    assert rates[9] == rates[10] == 1
    assert rates == sorted(rates[:10]) + sorted(rates[10:], reverse=True)
    assert rates[-1] == pytest.approx(0.1)


def test_a_warm_up_never_takes_more_than_half_of_the_steps() -> None:
    assert learning_rate(5, FitSettings(steps=10, warmup_steps=100, learning_rate=1.0)) == 1


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: AnswerSettings(temperature=0), "--temperature 0; expected a number from 0.001"),
        (lambda: AnswerSettings(held_out_every=1), "--held-out-every 1; expected"),
        (lambda: DraftShape(hidden_size=97), "--hidden-size 97 with --heads 3; expected heads"),
        (lambda: FitSettings(soft_weight=1.5), "--soft-weight 1.5; expected a number from 0 to 1"),
        (lambda: FitSettings(batch_tokens=100), "--batch-tokens 100; expected a number from 512"),
        (lambda: FitSettings(steps=0), "--steps 0; expected"),
    ],
)
def test_a_setting_out_of_range_is_named_with_its_option(make: object, message: str) -> None:
    assert callable(make)
    with pytest.raises(InvalidSetting, match=message):
        make()
