"""What every target model does, whatever computes it."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

from outrider.engine.models.base import Rows, TargetModel
from outrider.engine.models.eager import EagerLlama
from outrider.engine.models.fused import PREFILL_ROWS, FusedLlama
from outrider.engine.models.safetensors_source import SafetensorsSource

SHAPES: dict[str, dict[str, Any]] = {
    "two query heads per cache head": {},
    "tied embeddings": {"tie_word_embeddings": True},
    "one query head per cache head": {"num_key_value_heads": 4},
    "three query heads per cache head": {"hidden_size": 192, "num_attention_heads": 6},
    "seven query heads per cache head": {
        "hidden_size": 224,
        "num_attention_heads": 7,
        "num_key_value_heads": 1,
    },
    "heads of 128": {"num_attention_heads": 2, "num_key_value_heads": 1, "head_dim": 128},
    "an intermediate size of 96": {"intermediate_size": 96},
}
LONG = 2 * PREFILL_ROWS + 17
Build = Callable[[Path], TargetModel]
Reference = Callable[[Path, list[int]], torch.Tensor]


def fused(folder: Path) -> TargetModel:
    source = SafetensorsSource(folder)
    return FusedLlama(source, dtype=torch.float32, slots=4, capacity=LONG + 3, threads=2)


def eager(folder: Path) -> TargetModel:
    source = SafetensorsSource(folder)
    cpu = torch.device("cpu")
    return EagerLlama(source, dtype=torch.float32, slots=4, capacity=LONG + 3, device=cpu)


@pytest.fixture(params=[fused, eager], ids=["fused", "torch"])
def build(request: pytest.FixtureRequest) -> Build:
    chosen: Build = request.param
    return chosen


def random_tokens(count: int, seed: int = 0) -> list[int]:
    generator = torch.Generator().manual_seed(seed)
    tokens: list[int] = torch.randint(0, 199, (count,), generator=generator).tolist()
    return tokens


def run(model: TargetModel, *parts: tuple[int, int, list[int]]) -> list[torch.Tensor]:
    """Logits of every row of each part: a slot, its first position, its tokens."""
    rows = Rows(
        token_ids=[token for _, _, tokens in parts for token in tokens],
        positions=[at for _, first, tokens in parts for at in range(first, first + len(tokens))],
        slots=[slot for slot, _, tokens in parts for _ in tokens],
        wanted=range(sum(len(tokens) for _, _, tokens in parts)),
    )
    return list(torch.split(model.forward(rows).clone(), [len(tokens) for _, _, tokens in parts]))


def assert_close(seen: torch.Tensor, expected: torch.Tensor) -> None:
    assert expected.std() > 1, "logits too alike to show a fault"
    torch.testing.assert_close(seen, expected, atol=1e-4, rtol=0)


@pytest.mark.parametrize("shape", SHAPES)
def test_the_logits_of_a_long_prompt_and_of_further_tokens_are_those_of_transformers(
    shape: str, build: Build, checkpoint: Callable[..., Path], reference: Reference
) -> None:
    folder = checkpoint(**SHAPES[shape])
    tokens = random_tokens(LONG + 3)
    expected = reference(folder, tokens)
    model = build(folder)
    assert_close(run(model, (1, 0, tokens[:LONG]))[0], expected[:LONG])
    for at in range(LONG, LONG + 3):
        assert_close(run(model, (1, at, [tokens[at]]))[0], expected[at : at + 1])


def test_every_token_of_a_request_may_come_alone(
    build: Build, checkpoint: Callable[..., Path], reference: Reference
) -> None:
    model = build(checkpoint())
    tokens = random_tokens(70)
    seen = [run(model, (0, at, [token]))[0] for at, token in enumerate(tokens)]
    assert_close(torch.cat(seen), reference(checkpoint(), tokens))


def test_a_ragged_batch_gives_each_request_its_own_logits(
    build: Build, checkpoint: Callable[..., Path], reference: Reference
) -> None:
    folder = checkpoint()
    model = build(folder)
    # Slots in no order, and in each pass another number of rows for every request.
    cuts = {3: (5, 6, 15), 0: (130, 134, 134), 2: (1, 10, 11), 1: (64, 65, 70)}
    tokens = {slot: random_tokens(ends[-1], slot) for slot, ends in cuts.items()}
    starts = dict.fromkeys(cuts, 0)
    for step in range(3):
        parts = [
            (slot, starts[slot], tokens[slot][starts[slot] : ends[step]])
            for slot, ends in cuts.items()
            if ends[step] > starts[slot]
        ]
        for (slot, first, part), seen in zip(parts, run(model, *parts), strict=True):
            assert_close(seen, reference(folder, tokens[slot])[first : first + len(part)])
            starts[slot] = first + len(part)


def test_only_the_wanted_rows_have_logits(build: Build, checkpoint: Callable[..., Path]) -> None:
    model = build(checkpoint())
    tokens = random_tokens(LONG)
    (every,) = run(model, (0, 0, tokens))
    for wanted in ([LONG - 1], [0, 95, 96, 97, 192, LONG - 1], [100]):
        seen = model.forward(Rows(tokens, range(LONG), [0] * LONG, wanted))
        torch.testing.assert_close(seen, every[wanted], atol=1e-5, rtol=0)


def test_rejected_drafts_leave_no_trace_once_overwritten(
    build: Build, checkpoint: Callable[..., Path], reference: Reference
) -> None:
    model = build(checkpoint())
    tokens = random_tokens(90)
    run(model, (2, 0, tokens[:60]))
    for at in range(60, 90):
        wrong = random_tokens(8, seed=at)
        (seen,) = run(model, (2, at, [tokens[at], *wrong]))
        assert_close(seen[:1], reference(checkpoint(), tokens)[at : at + 1])


def test_a_slot_forgets_its_last_request(
    build: Build, checkpoint: Callable[..., Path], reference: Reference
) -> None:
    model = build(checkpoint())
    run(model, (1, 0, random_tokens(LONG)))
    short = random_tokens(10, seed=1)
    assert_close(run(model, (1, 0, short))[0], reference(checkpoint(), short))
