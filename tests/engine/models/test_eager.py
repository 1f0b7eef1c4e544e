from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from tests.engine.models.tiny import CASES

from outrider.engine.models.base import Rows
from outrider.engine.models.eager import LOGIT_TOLERANCE, EagerDecoder
from outrider.engine.models.safetensors_source import SafetensorsSource

TOKENS = torch.randint(0, 199, (60,), generator=torch.Generator().manual_seed(3)).tolist()


def load(folder: Path, dtype: torch.dtype) -> EagerDecoder:
    source = SafetensorsSource(folder)
    return EagerDecoder(
        source, dtype=dtype, num_blocks=2, max_length=len(TOKENS), device=torch.device("cpu")
    )


def in_one_pass(model: EagerDecoder) -> torch.Tensor:
    count = len(TOKENS)
    return model.forward(Rows(TOKENS, range(count), [0] * count, [[1]], range(count)))


def row_by_row(model: EagerDecoder) -> torch.Tensor:
    return torch.cat(
        [model.forward(Rows([token], [at], [0], [[0]], [0])) for at, token in enumerate(TOKENS)]
    )


@pytest.mark.parametrize("case", ["llama", "mistral, windows", "qwen 2", "qwen 3", "gemma 3"])
def test_bfloat16_costs_no_more_than_with_transformers(
    case: str, checkpoint: Callable[..., Path], reference: Callable[..., torch.Tensor]
) -> None:
    folder = checkpoint(**CASES[case])
    exact = reference(folder, TOKENS)
    theirs = (reference(folder, TOKENS, torch.bfloat16) - exact).abs()
    ours = (in_one_pass(load(folder, torch.bfloat16)) - exact).abs()
    # Rounded at other places: of the same size, but not the same.
    assert ours.mean() < 1.05 * theirs.mean()
    assert ours.max() < 1.5 * theirs.max()


def test_logits_are_float32_whatever_the_weights(checkpoint: Callable[..., Path]) -> None:
    assert in_one_pass(load(checkpoint(), torch.bfloat16)).dtype == torch.float32


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=["float32", "bfloat16"])
def test_the_stated_tolerance_covers_what_a_change_of_batch_shape_does(
    dtype: torch.dtype, checkpoint: Callable[..., Path]
) -> None:
    model = load(checkpoint(), dtype)
    assert model.logit_tolerance == LOGIT_TOLERANCE[dtype]
    assert (in_one_pass(model) - row_by_row(model)).abs().max() < model.logit_tolerance
