"""What every target model does, whatever computes it."""

import math
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file
from tests.engine.models.tiny import CASES

from outrider.engine.models.base import Rows, TargetModel, blocks_for
from outrider.engine.models.eager import EagerDecoder
from outrider.engine.models.fused import FusedDecoder
from outrider.engine.models.packing import PACKINGS
from outrider.engine.models.safetensors_source import SafetensorsSource

SHAPES: dict[str, dict[str, Any]] = {
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
LONG = 209  # more than the kernels take in one call
NUM_BLOCKS = 24
# The blocks of a sequence lie anywhere.
TABLES = torch.randperm(NUM_BLOCKS, generator=torch.Generator().manual_seed(4)).view(4, -1).tolist()
Build = Callable[[Path], TargetModel]
Reference = Callable[[Path, list[int]], torch.Tensor]


def fused(folder: Path) -> TargetModel:
    return FusedDecoder(
        SafetensorsSource(folder),
        packing=PACKINGS["float32"],
        num_blocks=NUM_BLOCKS,
        max_length=LONG + 3,
        threads=2,
    )


def eager(folder: Path) -> TargetModel:
    return EagerDecoder(
        SafetensorsSource(folder),
        dtype=torch.float32,
        num_blocks=NUM_BLOCKS,
        max_length=LONG + 3,
        device=torch.device("cpu"),
    )


@pytest.fixture(params=[fused, eager], ids=["fused", "torch"])
def build(request: pytest.FixtureRequest) -> Build:
    chosen: Build = request.param
    return chosen


def random_tokens(count: int, seed: int = 0) -> list[int]:
    generator = torch.Generator().manual_seed(seed)
    tokens: list[int] = torch.randint(0, 199, (count,), generator=generator).tolist()
    return tokens


def run(model: TargetModel, *parts: tuple[int, int, list[int]]) -> list[torch.Tensor]:
    """Logits of every row of each part: one of `TABLES`, its first position, its tokens."""
    rows = Rows(
        token_ids=[token for _, _, tokens in parts for token in tokens],
        positions=[at for _, first, tokens in parts for at in range(first, first + len(tokens))],
        sequences=[sequence for sequence, (_, _, tokens) in enumerate(parts) for _ in tokens],
        block_tables=[
            TABLES[table][: blocks_for(first + len(tokens))] for table, first, tokens in parts
        ],
        wanted=range(sum(len(tokens) for _, _, tokens in parts)),
    )
    return list(torch.split(model.forward(rows).clone(), [len(tokens) for _, _, tokens in parts]))


def assert_close(seen: torch.Tensor, expected: torch.Tensor) -> None:
    assert expected.std() > 1, "logits too alike to show a fault"
    torch.testing.assert_close(seen, expected, atol=1e-4, rtol=0)


@pytest.mark.parametrize("case", CASES)
def test_every_family_has_the_logits_that_transformers_gives_it(
    case: str, build: Build, checkpoint: Callable[..., Path], reference: Reference
) -> None:
    folder = checkpoint(**CASES[case])
    model = build(folder)
    first, second = random_tokens(150, seed=1), random_tokens(130, seed=2)
    answers: dict[int, list[torch.Tensor]] = {0: [], 1: []}
    # A prompt in two chunks beside one that joins later, then single tokens and drafts of both.
    for cuts in (
        {0: (0, 90)},
        {0: (90, 131), 1: (0, 120)},
        {1: (120, 121), 0: (131, 132)},
        {0: (132, 141), 1: (121, 124)},
        {1: (124, 130), 0: (141, 150)},
    ):
        parts = [(each, at, (first, second)[each][at:end]) for each, (at, end) in cuts.items()]
        for (each, _, _), logits in zip(parts, run(model, *parts), strict=True):
            answers[each].append(logits)
    for tokens, parts_of_it in zip((first, second), answers.values(), strict=True):
        assert_close(torch.cat(parts_of_it), reference(folder, tokens))


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
    # Sequences in no order, and in each pass another number of rows for every request.
    cuts = {3: (5, 6, 15), 0: (130, 134, 134), 2: (1, 10, 11), 1: (64, 65, 70)}
    tokens = {each: random_tokens(ends[-1], each) for each, ends in cuts.items()}
    starts = dict.fromkeys(cuts, 0)
    for step in range(3):
        parts = [
            (each, starts[each], tokens[each][starts[each] : ends[step]])
            for each, ends in cuts.items()
            if ends[step] > starts[each]
        ]
        for (each, first, part), seen in zip(parts, run(model, *parts), strict=True):
            assert_close(seen, reference(folder, tokens[each])[first : first + len(part)])
            starts[each] = first + len(part)


def test_only_the_wanted_rows_have_logits(build: Build, checkpoint: Callable[..., Path]) -> None:
    model = build(checkpoint())
    tokens = random_tokens(LONG)
    (every,) = run(model, (0, 0, tokens))
    for wanted in ([LONG - 1], [0, 95, 96, 97, 192, LONG - 1], [100]):
        seen = model.forward(Rows(tokens, range(LONG), [0] * LONG, TABLES[:1], wanted))
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


def test_blocks_forget_their_last_request(
    build: Build, checkpoint: Callable[..., Path], reference: Reference
) -> None:
    model = build(checkpoint())
    run(model, (1, 0, random_tokens(LONG)))
    short = random_tokens(10, seed=1)
    assert_close(run(model, (1, 0, short))[0], reference(checkpoint(), short))


def test_sequences_may_share_the_blocks_of_what_they_have_in_common(
    build: Build, checkpoint: Callable[..., Path], reference: Reference
) -> None:
    model = build(checkpoint())
    common, (one, other) = random_tokens(64), (random_tokens(20, seed) for seed in (5, 6))
    run(model, (0, 0, common))
    shared = TABLES[0][0]
    rows = Rows(
        token_ids=[*one, *other],
        positions=[*range(64, 84), *range(64, 84)],
        sequences=[0] * 20 + [1] * 20,
        block_tables=[[shared, TABLES[1][0]], [shared, TABLES[2][0]]],
        wanted=range(40),
    )
    seen = model.forward(rows)
    assert_close(seen[:20], reference(checkpoint(), common + one)[64:])
    assert_close(seen[20:], reference(checkpoint(), common + other)[64:])


def test_what_is_not_a_number_stays_with_its_request(
    build: Build, checkpoint: Callable[..., Path], tmp_path: Path, reference: Reference
) -> None:
    folder = Path(shutil.copytree(checkpoint(), tmp_path / "broken"))
    weights = load_file(folder / "model.safetensors")
    weights["model.embed_tokens.weight"][7] = math.nan
    save_file(weights, folder / "model.safetensors")
    model = build(folder)
    sound = [token for token in random_tokens(90) if token != 7]
    broken, fine = run(model, (0, 0, [7] * 70), (1, 0, sound[:20]))
    assert broken.isnan().all()
    assert_close(fine, reference(checkpoint(), sound[:20]))
    # Also in the blocks that it leaves behind.
    assert_close(run(model, (0, 0, sound))[0], reference(checkpoint(), sound))
