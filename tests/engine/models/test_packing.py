"""A decoder whose weights are packed in few bits computes with exactly those weights."""

from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from tests.engine.kernels.formats.grouped import kept
from tests.engine.models.tiny import CASES

from outrider.engine.kernels.formats.registry import FORMATS
from outrider.engine.models.base import Rows
from outrider.engine.models.fused import FusedDecoder
from outrider.engine.models.packing import PACKINGS, pack_ends, pack_layers
from outrider.engine.models.safetensors_source import SafetensorsSource
from outrider.engine.models.source import WeightSource

COUNT = 20


class Rounded:
    """The weights of `source` as the packing called `name` leaves them, in float32."""

    def __init__(self, source: WeightSource, name: str) -> None:
        self._source, self._name = source, name
        self.config = source.config

    def tensor(self, name: str) -> torch.Tensor:
        weight = self._source.tensor(name)
        if name == "model.embed_tokens.weight":
            return weight.bfloat16().float()
        if weight.ndim == 1:
            return weight
        head = name == "lm_head.weight"
        return kept(weight.float(), "int8" if head else self._name).float()


def logits(source: WeightSource, packing: str) -> torch.Tensor:
    model = FusedDecoder(
        source, packing=PACKINGS[packing], num_blocks=1, max_length=COUNT, threads=2
    )
    rows = Rows(range(1, COUNT + 1), range(COUNT), [0] * COUNT, [[0]], range(COUNT))
    return model.forward(rows).clone()


@pytest.mark.parametrize("name", ["int8", "int4"])
@pytest.mark.parametrize("case", ["llama", "qwen 3"])
def test_logits_are_those_of_the_rounded_weights_in_float32(
    name: str, case: str, checkpoint: Callable[..., Path]
) -> None:
    folder = checkpoint(**CASES[case], tie_word_embeddings=False)
    source = SafetensorsSource(folder)
    rounded = logits(Rounded(source, name), "float32")
    assert torch.allclose(logits(source, name), rounded, atol=1e-4)
    # The comparison would notice weights that are not rounded.
    assert not torch.allclose(logits(source, "float32"), rounded, atol=1e-3)


def test_a_tied_head_in_a_format_of_its_own_is_packed_beside_the_embedding(
    checkpoint: Callable[..., Path],
) -> None:
    source = SafetensorsSource(checkpoint(tie_word_embeddings=True))
    for name, packing in PACKINGS.items():
        ends = pack_ends(source, packing)
        assert (ends.head is ends.embedding) == (name in {"bfloat16", "float32"})


@pytest.mark.parametrize("tied", [True, False])
@pytest.mark.parametrize("name", PACKINGS)
def test_the_size_of_the_weights_is_that_of_the_packed_arrays(
    name: str, tied: bool, checkpoint: Callable[..., Path]
) -> None:
    # Sizes that fill panels and groups: those are not counted where they are not full.
    source = SafetensorsSource(
        checkpoint(tie_word_embeddings=tied, vocab_size=224, intermediate_size=96)
    )
    packing, config = PACKINGS[name], source.config
    ends, layers = pack_ends(source, packing), pack_layers(source, packing)
    matrices = sum(getattr(layers, each).nbytes for each in ("qkv", "output", "gate_up", "down"))
    vectors = sum(config.hidden_size for each in config.weight_names if "norm" in each)
    small = vectors * packing.layers.bits_per_weight / 8
    assert packing.step_bytes(config) == matrices + ends.head.nbytes + small
    shared = ends.head is ends.embedding
    held = matrices + ends.head.nbytes + (0 if shared else ends.embedding.nbytes)
    assert packing.weight_bytes(config) == held + small


def test_the_packings_name_formats_that_exist() -> None:
    for packing in PACKINGS.values():
        assert {packing.layers, packing.head, packing.embedding} <= set(FORMATS.values())
