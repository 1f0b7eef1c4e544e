import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from outrider.engine.kernels.formats.base import PANEL
from outrider.engine.kernels.likeliest import decide, look, nothing_seen


def found(
    logits: NDArray[np.float32], order: list[tuple[int, int]], threads: int
) -> tuple[list[int], list[float]]:
    """What threads find that take panels in this `order` of (thread, panel): tokens, others."""
    rows, vocab = logits.shape
    padded = np.zeros((rows, -(-vocab // PANEL) * PANEL), np.float32)
    padded[:, :vocab] = logits
    seen = nothing_seen(threads, rows)
    for thread, panel in order:
        look(padded, panel, vocab, seen[thread])
    assert (padded[:, :vocab] == logits).all() or np.isnan(logits).any()
    tokens, log_odds = np.empty(rows, np.int64), np.empty(rows)
    decide(seen, tokens, log_odds)
    return tokens.tolist(), np.exp(-log_odds).tolist()


def in_order(vocab: int) -> list[tuple[int, int]]:
    return [(0, panel) for panel in range(-(-vocab // PANEL))]


@settings(deadline=None)
@given(st.data())
def test_whichever_thread_takes_which_panel_the_first_of_the_greatest_wins(
    data: st.DataObject,
) -> None:
    threads = data.draw(st.integers(1, 3))
    vocab = data.draw(st.integers(1, 5 * PANEL))
    # Few different values, so that many are equal.
    values = st.sampled_from([-3.0, -0.0, 0.0, 1.0, 2.5])
    row = st.lists(values, min_size=vocab, max_size=vocab)
    logits = np.array(data.draw(st.lists(row, min_size=1, max_size=3)), np.float32)
    panels = data.draw(st.permutations(range(-(-vocab // PANEL))))
    order = [(data.draw(st.integers(0, threads - 1)), panel) for panel in panels]

    tokens, others = found(logits, order, threads)

    assert tokens == logits.argmax(axis=1).tolist()
    for row_logits, token, weight in zip(logits.astype(float), tokens, others, strict=True):
        rest = np.delete(np.exp(row_logits - row_logits[token]), token)
        assert weight == pytest.approx(rest.sum(), rel=1e-5)


@pytest.mark.parametrize("vocab", [49_152, 1_000])
def test_of_a_whole_vocabulary(vocab: int) -> None:
    logits = np.random.default_rng(3).normal(scale=4, size=(4, vocab)).astype(np.float32)

    tokens, others = found(logits, in_order(vocab), 1)

    assert tokens == logits.argmax(axis=1).tolist()
    exact = np.exp(logits.astype(float) - logits.max(axis=1, keepdims=True)).sum(axis=1) - 1
    np.testing.assert_allclose(others, exact, rtol=1e-5)


def test_what_hardly_weighs_is_not_lost_beside_the_greatest() -> None:
    logits = np.full((1, 64), -25.0, np.float32)
    logits[0, 40] = 0

    tokens, others = found(logits, in_order(64), 1)

    assert tokens == [40]
    assert others == pytest.approx([63 * np.exp(-25)], rel=1e-5)


@pytest.mark.parametrize("broken", [np.nan, np.inf])
@pytest.mark.parametrize("at", [0, 17, 39])
def test_of_a_row_with_a_logit_that_is_no_finite_number_nothing_is_known(
    broken: float, at: int
) -> None:
    logits = np.zeros((2, 40), np.float32)
    logits[1, at] = broken

    tokens, others = found(logits, in_order(40), 1)

    assert tokens[0] == 0
    assert others[0] == pytest.approx(39)
    assert np.isnan(others[1])


def test_nor_of_one_in_which_every_token_is_impossible() -> None:
    _, others = found(np.full((1, 40), -np.inf, np.float32), in_order(40), 1)

    assert np.isnan(others[0])


def test_impossible_tokens_weigh_nothing() -> None:
    logits = np.full((1, 40), -np.inf, np.float32)
    logits[0, 38:] = 1

    tokens, others = found(logits, in_order(40), 1)

    assert tokens == [38]
    assert others == pytest.approx([1])
