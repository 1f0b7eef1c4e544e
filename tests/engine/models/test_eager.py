from collections.abc import Callable
from pathlib import Path

import pytest
import torch

from outrider.engine.models.base import Rows
from outrider.engine.models.eager import LOGIT_TOLERANCE, EagerLlama
from outrider.engine.models.safetensors_source import SafetensorsSource

TOKENS = torch.randint(0, 199, (60,), generator=torch.Generator().manual_seed(3)).tolist()


def load(folder: Path, dtype: torch.dtype) -> EagerLlama:
    source = SafetensorsSource(folder)
    return EagerLlama(
        source, dtype=dtype, slots=2, capacity=len(TOKENS), device=torch.device("cpu")
    )


def in_one_pass(model: EagerLlama) -> torch.Tensor:
    count = len(TOKENS)
    return model.forward(Rows(TOKENS, range(count), [0] * count, range(count)))


def row_by_row(model: EagerLlama) -> torch.Tensor:
    return torch.cat(
        [model.forward(Rows([token], [at], [1], [0])) for at, token in enumerate(TOKENS)]
    )


@pytest.mark.parametrize("changes", [{}, {"tie_word_embeddings": True, "head_dim": 32}])
def test_bfloat16_is_that_of_transformers(
    changes: dict[str, int], checkpoint: Callable[..., Path], reference: Callable[..., torch.Tensor]
) -> None:
    folder = checkpoint(**changes)
    expected = reference(folder, TOKENS, torch.bfloat16)
    seen = in_one_pass(load(folder, torch.bfloat16))
    # What bfloat16 costs, compared with float32, is the scale for a difference.
    cost = (expected - reference(folder, TOKENS)).abs()
    assert (seen - expected).abs().mean() < cost.mean()
    assert (seen - expected).abs().max() < cost.max()


def test_logits_are_float32_whatever_the_weights(checkpoint: Callable[..., Path]) -> None:
    assert in_one_pass(load(checkpoint(), torch.bfloat16)).dtype == torch.float32


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=["float32", "bfloat16"])
def test_the_stated_tolerance_covers_what_a_change_of_batch_shape_does(
    dtype: torch.dtype, checkpoint: Callable[..., Path]
) -> None:
    model = load(checkpoint(), dtype)
    assert model.logit_tolerance == LOGIT_TOLERANCE[dtype]
    assert (in_one_pass(model) - row_by_row(model)).abs().max() < model.logit_tolerance
