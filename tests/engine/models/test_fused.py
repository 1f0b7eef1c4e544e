"""A row's logits are the same bits whatever shares its pass, its cache or its machine."""

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import numba
import numpy as np
import pytest
import torch
from tests.engine.models.tiny import CASES

from outrider.engine.kernels.formats.tiles import tiles_available
from outrider.engine.likeliest import known
from outrider.engine.models.base import Rows, blocks_for
from outrider.engine.models.fused import FusedDecoder
from outrider.engine.models.fused_batch import PASS_ROWS
from outrider.engine.models.packing import PACKINGS
from outrider.engine.models.safetensors_source import SafetensorsSource

LENGTH = 140
NUM_BLOCKS = 9
STRAIGHT, SHUFFLED, OTHER = (0, 1, 2), (7, 3, 5), (8, 2, 6)
dtypes = pytest.mark.parametrize("dtype", PACKINGS)
unchanged = pytest.mark.parametrize("dtype", ["float32", "bfloat16"])  # of rounded checkpoints
families = pytest.mark.parametrize("case", ["llama", "qwen 2, windows, tied", "qwen 3", "gemma 3"])


def load(
    folder: Path,
    dtype: str = "float32",
    *,
    threads: int = 1,
    num_blocks: int = NUM_BLOCKS,
    max_length: int = LENGTH,
) -> FusedDecoder:
    return FusedDecoder(
        SafetensorsSource(folder),
        packing=PACKINGS[dtype],
        num_blocks=num_blocks,
        max_length=max_length,
        threads=threads,
    )


def assert_near_in_tiles(seen: torch.Tensor, expected: torch.Tensor) -> None:
    """Hold logits of activations with 16 bits against those of a cache in bfloat16.

    A key that lies halfway between two of its numbers may be rounded to either.
    """
    away = (seen - expected).abs()
    assert away.max() < 3e-2
    assert away.mean() < 3e-3


def random_tokens(count: int, seed: int = 7) -> list[int]:
    tokens: list[int] = np.random.default_rng(seed).integers(0, 199, count).tolist()
    return tokens


def run(
    model: FusedDecoder, tokens: Sequence[int], start: int = 0, table: Sequence[int] = STRAIGHT
) -> torch.Tensor:
    """Logits of `tokens`, at the positions from `start` on, in a pass to themselves."""
    count = len(tokens)
    rows = Rows(tokens, range(start, start + count), [0] * count, [table], range(count))
    return model.forward(rows).clone()


def row_by_row(model: FusedDecoder, tokens: Sequence[int]) -> torch.Tensor:
    """Logits [T, V] of a request whose every token had a pass to itself."""
    return torch.cat([run(model, [token], at) for at, token in enumerate(tokens)])


def chunks(total: int, sizes: list[int]) -> Iterator[tuple[int, int]]:
    """Ranges of the given sizes, over and over, up to `total`."""
    start = 0
    while start < total:
        size = sizes.pop(0)
        sizes.append(size)
        yield start, min(start + size, total)
        start += size


@dtypes
@families
@pytest.mark.parametrize("threads", [1, 3])
def test_a_row_is_bit_for_bit_the_same_alone_and_in_runs_of_any_length(
    case: str, dtype: str, threads: int, checkpoint: Callable[..., Path]
) -> None:
    folder, tokens = checkpoint(**CASES[case]), random_tokens(LENGTH)
    alone = row_by_row(load(folder, dtype), tokens)
    model = load(folder, dtype, threads=threads)
    for sizes in ([2], [3, 1], [9], [12, 13], [17], [33, 1, 64], [PASS_ROWS - 1, 7], [LENGTH]):
        for start, end in chunks(LENGTH, sizes):
            assert torch.equal(run(model, tokens[start:end], start), alone[start:end])


@dtypes
@families
def test_a_row_is_the_same_beside_other_requests_and_wherever_its_blocks_lie(
    case: str, dtype: str, checkpoint: Callable[..., Path]
) -> None:
    folder = checkpoint(**CASES[case])
    tokens, others = random_tokens(LENGTH), random_tokens(LENGTH, seed=8)
    alone = row_by_row(load(folder, dtype), tokens)
    model = load(folder, dtype, threads=2)
    at = 0
    for start, end in chunks(LENGTH, [5, 1, 40, 9, 2, 17]):
        # The other request runs ahead, with as many rows or fewer.
        other = range(at, min(at + max(1, (end - start) // 2), LENGTH))
        at = other.stop % LENGTH
        rows = Rows(
            [*others[other.start : other.stop], *tokens[start:end]],
            [*other, *range(start, end)],
            [0] * len(other) + [1] * (end - start),
            [OTHER, SHUFFLED],
            range(len(other), len(other) + end - start),
        )
        assert torch.equal(model.forward(rows), alone[start:end])


@pytest.mark.parametrize(("heads", "kv_heads"), [(2, 1), (6, 6), (7, 1), (6, 2)])
def test_a_row_is_the_same_in_any_run_whatever_the_number_of_heads(
    heads: int, kv_heads: int, checkpoint: Callable[..., Path]
) -> None:
    folder = checkpoint(
        hidden_size=32 * heads, num_attention_heads=heads, num_key_value_heads=kv_heads
    )
    tokens = random_tokens(70)
    alone = row_by_row(load(folder), tokens)
    model = load(folder, threads=2)
    for start, end in chunks(70, [1, 4, 30, 2, 9]):
        assert torch.equal(run(model, tokens[start:end], start), alone[start:end])


@pytest.mark.parametrize(
    "sizes",
    [
        {"hidden_size": 144, "num_attention_heads": 3, "num_key_value_heads": 1, "head_dim": 10},
        {"hidden_size": 40, "head_dim": 48, "intermediate_size": 33},
        {"head_dim": 256, "num_key_value_heads": 1},
    ],
    ids=["heads of 10", "hidden size 40", "heads of 256"],
)
def test_sizes_need_not_fill_whole_vectors(
    sizes: dict[str, int],
    checkpoint: Callable[..., Path],
    reference: Callable[..., torch.Tensor],
) -> None:
    folder, tokens = checkpoint(**sizes), random_tokens(LENGTH)
    seen = run(load(folder, threads=2), tokens)
    torch.testing.assert_close(seen, reference(folder, tokens), atol=1e-4, rtol=0)
    assert torch.equal(row_by_row(load(folder), tokens[:70]), seen[:70])


def test_more_threads_than_cores_agree_pass_after_pass(checkpoint: Callable[..., Path]) -> None:
    tokens = random_tokens(9)
    expected = run(load(checkpoint()), tokens)
    crowded = load(checkpoint(), threads=8)
    for _ in range(300):
        assert torch.equal(run(crowded, tokens), expected)


@unchanged
def test_a_context_of_thousands_of_tokens_is_that_of_transformers_and_exact(
    dtype: str, checkpoint: Callable[..., Path], reference: Callable[..., torch.Tensor]
) -> None:
    length = 4_100
    folder = checkpoint(
        num_hidden_layers=1, max_position_embeddings=8192, num_attention_heads=2, rounded=True
    )
    tokens = random_tokens(length)
    blocks = blocks_for(length)
    table = np.random.default_rng(1).permutation(blocks).tolist()
    model = load(folder, dtype, threads=2, num_blocks=blocks, max_length=length)
    seen = run(model, tokens, table=table)
    if dtype == "bfloat16" and tiles_available():
        assert_near_in_tiles(seen, reference(folder, tokens, cached=torch.bfloat16))
    else:
        torch.testing.assert_close(seen, reference(folder, tokens), atol=1e-4, rtol=0)
    for start, end in ((length - 1, length), (length - 9, length), (length - 30, length - 3)):
        assert torch.equal(run(model, tokens[start:end], start, table), seen[start:end])


@families
def test_bfloat16_weights_equal_float32_weights_that_were_rounded_to_bfloat16(
    case: str, checkpoint: Callable[..., Path], reference: Callable[..., torch.Tensor]
) -> None:
    tokens = random_tokens(70)
    exact, rounded = checkpoint(**CASES[case]), checkpoint(**CASES[case], rounded=True)
    seen = run(load(exact, "bfloat16"), tokens)
    if tiles_available():
        assert_near_in_tiles(seen, reference(rounded, tokens, cached=torch.bfloat16))
    else:
        assert torch.equal(seen, run(load(rounded), tokens))
    assert (seen - run(load(exact), tokens)).abs().max() > 5e-3


@dtypes
def test_overwriting_rejected_drafts_is_bit_for_bit_as_if_they_had_never_been(
    dtype: str, checkpoint: Callable[..., Path]
) -> None:
    tokens = random_tokens(LENGTH)
    clean = row_by_row(load(checkpoint(), dtype), tokens)
    model = load(checkpoint(), dtype, threads=2)
    for at in range(LENGTH):
        wrong = [198 - token for token in tokens[at + 1 : at + 9]]
        assert torch.equal(run(model, [tokens[at], *wrong], at)[:1], clean[at : at + 1])


@dtypes
@pytest.mark.parametrize("vocab_size", [199, 224])
def test_it_tells_the_likeliest_token_of_each_row_and_its_log_odds(
    dtype: str, vocab_size: int, checkpoint: Callable[..., Path]
) -> None:
    model = load(checkpoint(vocab_size=vocab_size), dtype, threads=3)
    logits = model.forward(Rows(random_tokens(9), range(9), [0] * 9, [STRAIGHT], range(9)))
    likeliest = known(logits)
    assert likeliest is not None
    assert likeliest.tokens.tolist() == logits.clone().argmax(dim=-1).tolist()
    p = logits.double().softmax(dim=-1).amax(dim=-1)
    np.testing.assert_allclose(likeliest.log_odds, (p / (1 - p)).log(), rtol=1e-5, atol=1e-5)


def test_of_a_pass_with_logits_that_are_no_numbers_it_tells_nothing(
    checkpoint: Callable[..., Path],
) -> None:
    model = load(checkpoint())
    rows = Rows([1, 2], range(2), [0] * 2, [STRAIGHT], range(2))
    assert known(model.forward(rows)) is not None
    model._model[1].norm[:] = np.nan
    logits = model.forward(rows)
    assert logits.isnan().all()
    assert known(logits) is None


def test_all_passes_have_arguments_of_the_types_that_the_machine_code_is_for(
    checkpoint: Callable[..., Path],
) -> None:
    model = load(checkpoint(), num_blocks=20, max_length=1_000)
    run(model, [1])
    real, seen = model._forward, list[tuple[object, ...]]()

    def note(*arguments: object) -> None:
        seen.append(tuple(numba.typeof(each) for each in arguments))
        real(*arguments)

    model._forward = note
    every_second = np.arange(20, dtype=np.int64)[::2]
    blocks = np.arange(20, dtype=np.int32)[::-1]
    many = PASS_ROWS + 5
    for rows in (
        Rows([1], [0], [0], [[0]], []),
        Rows(every_second, every_second, [0] * 10, [blocks], every_second[:5]),  # type: ignore[arg-type,list-item]
        Rows([1, 2], [3, 9], [0, 1], [[1], [2, 3, 4]], [1]),
        Rows([1] * many, range(many), [0] * many, [range(10)], range(many)),
    ):
        model.forward(rows)
    assert len(seen) == 5
    assert len(set(seen)) == 1


def test_logits_after_a_wider_pass_have_only_the_rows_that_were_wanted(
    checkpoint: Callable[..., Path],
) -> None:
    model = load(checkpoint())
    for wanted in ([0], range(5), [1, 3], [], [4]):
        logits = model.forward(Rows(random_tokens(5), range(5), [0] * 5, [STRAIGHT], wanted))
        assert logits.shape == (len(wanted), 199)
        assert logits.dtype == torch.float32


def test_logits_and_scratch_stay_where_they_are_from_step_to_step(
    checkpoint: Callable[..., Path],
) -> None:
    model = load(checkpoint())
    run(model, random_tokens(20))
    rows = Rows([1] * 9, range(20, 29), [0] * 9, [STRAIGHT], range(9))
    places = {(model.forward(rows).data_ptr(), model._shared.scratch.ctypes.data) for _ in range(3)}
    assert len(places) == 1


def test_the_first_pass_may_want_no_logits(checkpoint: Callable[..., Path]) -> None:
    assert load(checkpoint()).forward(Rows([1], [0], [0], [STRAIGHT], [])).shape == (0, 199)


@dtypes
def test_rows_whose_logits_nobody_wants_are_there_for_those_that_come_after(
    dtype: str, checkpoint: Callable[..., Path]
) -> None:
    tokens = random_tokens(LENGTH)
    whole = run(load(checkpoint(), dtype, threads=2), tokens)
    model = load(checkpoint(), dtype, threads=2)
    for start, end in chunks(LENGTH - 1, [50, 3, 1, 64]):
        count = end - start
        rows = Rows(tokens[start:end], range(start, end), [0] * count, [STRAIGHT], [])
        assert model.forward(rows).shape == (0, 199)
    assert torch.equal(run(model, tokens[-1:], LENGTH - 1), whole[-1:])
