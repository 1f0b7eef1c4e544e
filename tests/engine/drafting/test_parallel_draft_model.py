"""Drafts written in one pass: which rows there are, and which token each predicts."""

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pytest
import torch
from tests.engine.drafting.own import random_prompt
from tests.engine.loops import VOCABULARY, RememberingModel, engine_of, finish, request
from tests.engine.models.tiny import SIZES

from outrider.engine.drafting.own_model.model import OwnModel
from outrider.engine.drafting.parallel_draft_model import ParallelModelDrafter
from outrider.engine.drafting.sampling import DraftSampleMethod
from outrider.engine.models.base import Rows, TargetModel
from outrider.engine.models.eager import EagerDecoder
from outrider.engine.models.safetensors_source import SafetensorsSource
from outrider.engine.sampling import SamplingParameters

MASK = 23
K = 4


def parallel(
    model: TargetModel, method: DraftSampleMethod = "greedy", *, max_rows: int = 1_000
) -> ParallelModelDrafter:
    return ParallelModelDrafter(OwnModel(model, max_rows=max_rows, mask_token_id=MASK), method)


@dataclass
class Seen(RememberingModel):
    """Keeps the rows of its passes."""

    passes: list[Rows] = field(default_factory=list)

    def __init__(self) -> None:
        super().__init__(num_blocks=20)
        self.passes = []

    def forward(self, rows: Rows) -> torch.Tensor:
        self.passes.append(rows)
        return super().forward(rows)


def test_after_the_last_token_come_masks_at_the_positions_that_follow() -> None:
    model = Seen()
    drafter = parallel(model)
    first, second = request([5, 6, 7], 30, "a"), request([8, 9], 30, "b")
    drafter.propose([first, second], np.array([3, 1]))
    (rows,) = model.passes
    # The second misses least, and so comes first; a draft of one token needs no mask.
    assert list(rows.token_ids) == [8, 9, 5, 6, 7, MASK, MASK]
    assert list(rows.positions) == [0, 1, 0, 1, 2, 3, 4]
    assert list(rows.sequences) == [0, 0, 1, 1, 1, 1, 1]
    assert list(rows.wanted) == [1, 4, 5, 6]


def test_what_is_accepted_is_read_where_the_masks_were() -> None:
    model = Seen()
    drafter = parallel(model)
    sequence = request([5, 6, 7], 30)
    drafter.propose([sequence], np.array([3]))
    sequence.append([1, 2, 3, 4])
    drafter.propose([sequence], np.array([2]))
    assert list(model.passes[1].token_ids) == [1, 2, 3, 4, MASK]
    assert list(model.passes[1].positions) == [3, 4, 5, 6, 7]
    assert list(model.passes[1].wanted) == [3, 4]


def test_a_prompt_read_in_parts_is_followed_by_masks_once_it_is_read() -> None:
    model = Seen()
    drafter = parallel(model, max_rows=20)
    sequence = request(random_prompt(30), 9)
    assert drafter.propose([sequence], np.array([3])).lengths.tolist() == [0]
    assert MASK not in list(model.passes[0].token_ids)[20:]
    assert drafter.propose([sequence], np.array([3])).lengths.tolist() == [3]
    assert list(model.passes[1].token_ids)[-2:] == [MASK, MASK]


# Against a decoder written out here, which knows no cache: a Llama of one layer.


def llama(weights: dict[str, torch.Tensor], tokens: list[int]) -> torch.Tensor:
    """Logits [T, V] of a one-layer Llama with two heads on one, by its definition."""
    size, eps, theta = 64, SIZES["rms_norm_eps"], SIZES["rope_theta"]
    assert isinstance(eps, float)
    assert isinstance(theta, float)
    layer = {name.removeprefix("model.layers.0."): weight for name, weight in weights.items()}

    def norm(x: torch.Tensor, name: str) -> torch.Tensor:
        return x * (x.pow(2).mean(-1, keepdim=True) + eps).rsqrt() * layer[name]

    def turned(x: torch.Tensor) -> torch.Tensor:
        angles = torch.arange(len(x)).unsqueeze(1) / theta ** (torch.arange(0, size, 2) / size)
        cos, sin = angles.cos().unsqueeze(1), angles.sin().unsqueeze(1)
        a, b = x[..., : size // 2], x[..., size // 2 :]
        return torch.cat((a * cos - b * sin, b * cos + a * sin), dim=-1)

    x = weights["model.embed_tokens.weight"][tokens]
    normed = norm(x, "input_layernorm.weight")
    q, k, v = (
        (normed @ layer[f"self_attn.{each}_proj.weight"].T).view(len(x), -1, size) for each in "qkv"
    )
    q, k = turned(q), turned(k)
    groups = q.shape[1] // k.shape[1]
    k, v = k.repeat_interleave(groups, 1), v.repeat_interleave(groups, 1)
    scores = torch.einsum("ihd,jhd->hij", q, k) / size**0.5
    scores = scores.masked_fill(~torch.ones(len(x), len(x)).tril().bool(), -torch.inf)
    attended = torch.einsum("hij,jhd->ihd", scores.softmax(-1), v).flatten(1)
    x = x + attended @ layer["self_attn.o_proj.weight"].T
    normed = norm(x, "post_attention_layernorm.weight")
    gate = torch.nn.functional.silu(normed @ layer["mlp.gate_proj.weight"].T)
    x = x + (gate * (normed @ layer["mlp.up_proj.weight"].T)) @ layer["mlp.down_proj.weight"].T
    return norm(x, "model.norm.weight") @ weights["lm_head.weight"].T


@pytest.fixture(scope="module")
def weights(checkpoint: Callable[..., Path]) -> tuple[Path, dict[str, torch.Tensor]]:
    from safetensors.torch import load_file  # noqa: PLC0415

    folder = checkpoint(vocab_size=VOCABULARY, num_hidden_layers=1, tie_word_embeddings=False)
    return folder, load_file(folder / "model.safetensors")


@pytest.mark.parametrize("method", ["greedy", "probabilistic"])
def test_row_by_row_it_says_what_the_model_says_after_tokens_and_masks(
    weights: tuple[Path, dict[str, torch.Tensor]], method: DraftSampleMethod
) -> None:
    folder, tensors = weights
    model = EagerDecoder(
        SafetensorsSource(folder),
        dtype=torch.float32,
        num_blocks=20,
        max_length=400,
        device=torch.device("cpu"),
    )
    drafter = parallel(model, method)
    parameters = SamplingParameters(0.8, 3)
    batch = [request(random_prompt(60 + i, i), 90, f"{i}", parameters=parameters) for i in range(3)]
    random = np.random.default_rng(2)
    for _ in range(5):
        limit = random.integers(1, K + 1, len(batch))
        draft = drafter.propose(batch, limit)
        assert draft.lengths.tolist() == limit.tolist()
        for row, sequence in enumerate(batch):
            length = int(limit[row])
            logits = llama(tensors, [*sequence.token_ids.tolist(), *[MASK] * (length - 1)])
            logits = logits[-length:]
            if method == "greedy":
                expected = logits.argmax(-1).tolist()
                assert draft.tokens[row, :length].tolist() == expected
            else:
                assert draft.probabilities is not None
                q = (logits / 0.8).softmax(-1)
                torch.testing.assert_close(
                    draft.probabilities[row, :length], q, atol=1e-4, rtol=1e-3
                )
            # Some of it accepted, and another token.
            kept = draft.tokens[row, : random.integers(0, length + 1)].tolist()
            sequence.append([*kept, int(random.integers(VOCABULARY))])


def test_the_output_is_that_of_the_target() -> None:
    drafter = parallel(RememberingModel(60))
    engine, recorder = engine_of(RememberingModel(60), drafter, K)
    sequences = [request(random_prompt(40, i), 50, f"r{i}") for i in range(8)]
    for sequence in sequences:
        engine.add(sequence)
    finish(engine)
    for i, sequence in enumerate(sequences):
        assert sequence.output_token_ids.tolist() == RememberingModel.answer(
            random_prompt(40, i), 50
        )
        # The first token of each draft is what the model would say; the others follow masks.
        assert all(step.accepted >= 1 for step in recorder.take(sequence).steps if step.drafted)
    pool = drafter.own.cache.pool
    assert pool.free_blocks == pool.num_blocks
