from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest
import torch

from outrider.engine.models.base import Rows
from outrider.engine.models.fused import PREFILL_ROWS, FusedLlama
from outrider.engine.models.safetensors_source import SafetensorsSource
from outrider.errors import UnsupportedModel

CAPACITY = 70
DTYPES = (torch.float32, torch.bfloat16)
dtypes = pytest.mark.parametrize("dtype", DTYPES, ids=["float32", "bfloat16"])


def load(
    folder: Path,
    dtype: torch.dtype = torch.float32,
    *,
    slots: int = 1,
    threads: int = 1,
    capacity: int = CAPACITY,
) -> FusedLlama:
    source = SafetensorsSource(folder)
    return FusedLlama(source, dtype=dtype, slots=slots, capacity=capacity, threads=threads)


def random_tokens(count: int) -> list[int]:
    tokens: list[int] = np.random.default_rng(7).integers(0, 199, count).tolist()
    return tokens


def row_by_row(model: FusedLlama, tokens: list[int]) -> torch.Tensor:
    """Logits [T, V] of a request whose every token had a pass to itself."""
    passes = [
        model.forward(Rows([token], [at], [0], [0])).clone() for at, token in enumerate(tokens)
    ]
    return torch.cat(passes)


def chunks(total: int, sizes: list[int]) -> Iterator[tuple[int, int]]:
    """Ranges of the given sizes, over and over, up to `total`."""
    start = 0
    while start < total:
        size = sizes.pop(0)
        sizes.append(size)
        yield start, min(start + size, total)
        start += size


@dtypes
@pytest.mark.parametrize("threads", [1, 2, 3])
@pytest.mark.parametrize("size", [1, 2, 3, 5, 9, 12, 13, 17, 25, CAPACITY])
def test_a_row_is_bit_for_bit_the_same_alone_and_in_any_batch_and_for_any_number_of_threads(
    dtype: torch.dtype, threads: int, size: int, checkpoint: Callable[..., Path]
) -> None:
    tokens = random_tokens(CAPACITY)
    alone = row_by_row(load(checkpoint(), dtype), tokens)
    model = load(checkpoint(), dtype, threads=threads, slots=2)
    for start, end in chunks(CAPACITY, [size]):
        # A request in the other slot has as many rows, of other tokens at other positions.
        other = range(end - start)
        rows = Rows(
            [*other, *tokens[start:end]],
            [*other, *range(start, end)],
            [1] * len(other) + [0] * len(other),
            range(len(other), 2 * len(other)),
        )
        assert torch.equal(model.forward(rows), alone[start:end])


@pytest.mark.parametrize("heads", [2, 6, 7])
def test_a_row_is_the_same_in_any_batch_whatever_the_number_of_heads(
    heads: int, checkpoint: Callable[..., Path]
) -> None:
    folder = checkpoint(hidden_size=32 * heads, num_attention_heads=heads, num_key_value_heads=1)
    tokens = random_tokens(CAPACITY)
    alone = row_by_row(load(folder), tokens)
    model = load(folder, threads=2)
    for start, end in chunks(CAPACITY, [1, 4, 30, 2, 9]):
        rows = Rows(tokens[start:end], range(start, end), [0] * (end - start), range(end - start))
        assert torch.equal(model.forward(rows), alone[start:end])


def test_more_threads_than_cores_agree_pass_after_pass(checkpoint: Callable[..., Path]) -> None:
    tokens = random_tokens(9)
    rows = Rows(tokens, range(9), [0] * 9, range(9))
    expected = load(checkpoint()).forward(rows)
    crowded = load(checkpoint(), threads=8)
    for _ in range(300):
        assert torch.equal(crowded.forward(rows), expected)


@dtypes
def test_a_long_prompt_fills_the_cache_as_its_tokens_one_by_one_do(
    dtype: torch.dtype, checkpoint: Callable[..., Path]
) -> None:
    tokens = random_tokens(2 * PREFILL_ROWS + 5)
    capacity = len(tokens)
    alone = row_by_row(load(checkpoint(), dtype, capacity=capacity), tokens)
    model = load(checkpoint(), dtype, threads=2, capacity=capacity)
    wanted = [0, PREFILL_ROWS - 1, PREFILL_ROWS, len(tokens) - 1]
    rows = Rows(tokens, range(len(tokens)), [0] * len(tokens), wanted)
    assert torch.equal(model.forward(rows), alone[wanted])


def test_bfloat16_weights_equal_float32_weights_that_were_rounded_to_bfloat16(
    checkpoint: Callable[..., Path],
) -> None:
    tokens = random_tokens(CAPACITY)
    rounded = row_by_row(load(checkpoint(rounded=True)), tokens)
    assert torch.equal(row_by_row(load(checkpoint(), torch.bfloat16), tokens), rounded)
    assert not torch.equal(row_by_row(load(checkpoint()), tokens), rounded)


def test_bfloat16_weights_agree_with_transformers_on_the_rounded_weights(
    checkpoint: Callable[..., Path], reference: Callable[..., torch.Tensor]
) -> None:
    tokens = random_tokens(CAPACITY)
    seen = row_by_row(load(checkpoint(), torch.bfloat16), tokens)
    expected = reference(checkpoint(rounded=True), tokens)
    torch.testing.assert_close(seen, expected, atol=1e-4, rtol=0)


@dtypes
def test_overwriting_rejected_drafts_is_bit_for_bit_as_if_they_had_never_been(
    dtype: torch.dtype, checkpoint: Callable[..., Path]
) -> None:
    tokens = random_tokens(CAPACITY)
    clean = row_by_row(load(checkpoint(), dtype), tokens)
    model = load(checkpoint(), dtype, threads=2)
    for at in range(CAPACITY):
        drafted = range(at + 1, min(at + 9, CAPACITY))
        rows = Rows(
            [tokens[at], *(198 - tokens[i] for i in drafted)],
            [at, *drafted],
            [0] * (1 + len(drafted)),
            [0],
        )
        assert torch.equal(model.forward(rows), clean[at : at + 1])


def test_logits_after_a_wider_pass_have_only_the_rows_that_were_wanted(
    checkpoint: Callable[..., Path],
) -> None:
    model = load(checkpoint())
    for wanted in ([0], range(5), [1, 3], [], [4]):
        logits = model.forward(Rows(random_tokens(5), range(5), [0] * 5, wanted))
        assert logits.shape == (len(wanted), 199)
        assert logits.dtype == torch.float32


def test_the_first_pass_may_want_no_logits(checkpoint: Callable[..., Path]) -> None:
    assert load(checkpoint()).forward(Rows([1], [0], [0], [])).shape == (0, 199)


@pytest.mark.parametrize(
    ("token", "position", "slot"), [(199, 0, 0), (-1, 0, 0), (0, CAPACITY, 0), (0, 0, 1)]
)
def test_no_row_reaches_outside_the_model_or_its_cache(
    token: int, position: int, slot: int, checkpoint: Callable[..., Path]
) -> None:
    with pytest.raises(AssertionError, match="outside"):
        load(checkpoint()).forward(Rows([token], [position], [slot], [0]))


@pytest.mark.parametrize(
    ("changes", "seen"),
    [
        ({"hidden_size": 144}, "the hidden size is 144, the head size 64"),
        ({"head_dim": 32}, "the hidden size is 128, the head size 32"),
    ],
)
def test_sizes_that_the_kernels_cannot_do_point_to_the_other_backend(
    changes: dict[str, int], seen: str, checkpoint: Callable[..., Path]
) -> None:
    with pytest.raises(UnsupportedModel, match=f"{seen}.*multiples of 32 and 64.*--backend torch"):
        load(checkpoint(**changes))
