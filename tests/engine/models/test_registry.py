from collections.abc import Callable
from pathlib import Path

import pytest
import torch

from outrider.engine.models.base import Rows
from outrider.engine.models.config import DecoderConfig
from outrider.engine.models.eager import EagerDecoder
from outrider.engine.models.fused import FusedDecoder
from outrider.engine.models.registry import (
    BACKENDS,
    DTYPES,
    ModelSettings,
    check_memory,
    load_model,
    resolve,
)
from outrider.engine.models.rope import Rope
from outrider.engine.models.safetensors_source import SafetensorsSource
from outrider.errors import CorruptFile, InvalidSetting, NotEnoughMemory

GIB = 2**30
# 1.25 x 2^30 weights, most of them in the embedding; a token's keys and values take 1 MiB.
LARGE = DecoderConfig(
    family="llama",
    vocab_size=2**20,
    hidden_size=1024,
    intermediate_size=1,
    num_layers=32,
    num_heads=1,
    num_kv_heads=64,
    head_dim=64,
    rms_norm_eps=1e-5,
    max_positions=8192,
    tied_embeddings=True,
    attention_scale=1.0,
    windows=(0,) * 32,
    ropes=(Rope(10_000.0),),
    rope_of_layer=(0,) * 32,
)


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("dtype", DTYPES)
def test_names_that_are_given_stay_as_they_are(backend: str, dtype: str) -> None:
    assert resolve(ModelSettings(backend=backend, dtype=dtype)) == (backend, dtype)


def test_auto_stands_for_names_that_exist() -> None:
    backend, dtype = resolve(ModelSettings())
    assert backend in BACKENDS
    assert dtype in DTYPES
    assert backend == ("torch" if torch.cuda.is_available() else "fused")


def test_auto_takes_bfloat16_for_the_fused_kernels_on_any_cpu() -> None:
    assert resolve(ModelSettings(backend="fused")) == ("fused", "bfloat16")


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        (ModelSettings(backend="gpu"), "--backend gpu; expected auto or one of fused, torch;"),
        (ModelSettings(dtype="int8"), "--dtype int8; expected auto or one of bfloat16, float32;"),
    ],
)
def test_an_unknown_name_is_refused_with_the_valid_ones(
    settings: ModelSettings, message: str, tmp_path: Path
) -> None:
    with pytest.raises(InvalidSetting, match=message):
        resolve(settings)
    with pytest.raises(InvalidSetting, match=message):
        load_model(tmp_path, settings)


@pytest.mark.parametrize(
    ("backend", "kind"), [("fused", FusedDecoder), ("torch", EagerDecoder), ("auto", object)]
)
@pytest.mark.parametrize("dtype", DTYPES)
def test_a_model_is_loaded_as_the_settings_say(
    backend: str, kind: type, dtype: str, checkpoint: Callable[..., Path]
) -> None:
    settings = ModelSettings(backend=backend, dtype=dtype, threads=2, num_blocks=3, max_length=9)
    model = load_model(checkpoint(), settings)
    assert isinstance(model, kind)
    assert model.max_length == 9
    assert model.num_blocks == 3
    assert model.dtype == DTYPES[dtype]
    assert model.config == SafetensorsSource(checkpoint()).config
    # The last block exists.
    rows = Rows([5] * 9, range(9), [0] * 9, [[2]], [8])
    assert model.forward(rows).shape == (1, model.config.vocab_size)


def test_a_folder_that_is_no_model_is_told_so(tmp_path: Path) -> None:
    with pytest.raises(CorruptFile, match=r"has no config\.json"):
        load_model(tmp_path, ModelSettings())


def test_the_room_is_the_only_thing_that_changes_with_it() -> None:
    settings = ModelSettings("torch", "float32", threads=3, num_blocks=2, max_length=10)
    assert settings.with_room(128) == ModelSettings("torch", "float32", 3, 2, 128)
    assert settings.with_room(129, sequences=4) == ModelSettings("torch", "float32", 3, 12, 129)


@pytest.mark.parametrize(
    ("dtype", "sequences", "expected"),
    [
        # 1.25 GiB of weights times 2 or 4 bytes, half as much again to pack
        # them, and 1 GiB for each sequence.
        (torch.bfloat16, 1, "4.8 GiB for weights and cache"),
        (torch.bfloat16, 4, "7.8 GiB for weights and cache"),
        (torch.float32, 1, "8.5 GiB for weights and cache"),
    ],
)
def test_too_little_memory_is_told_with_what_is_free_and_what_is_needed(
    dtype: torch.dtype, sequences: int, expected: str
) -> None:
    settings = ModelSettings().with_room(1024, sequences)
    assert LARGE.kv_bytes_per_token() == 2**20
    with pytest.raises(NotEnoughMemory) as caught:
        check_memory(LARGE, settings, dtype, int(1.25 * GIB))
    assert caught.value.seen == "1.2 GiB of memory are free"
    assert caught.value.expected == expected


def test_memory_is_enough_from_the_very_byte_on_that_is_needed() -> None:
    settings = ModelSettings().with_room(1024)
    needed = LARGE.parameters * 3 + GIB
    check_memory(LARGE, settings, torch.bfloat16, needed)
    with pytest.raises(NotEnoughMemory):
        check_memory(LARGE, settings, torch.bfloat16, needed - 1)


def test_a_model_that_does_not_fit_is_not_loaded(checkpoint: Callable[..., Path]) -> None:
    with pytest.raises(NotEnoughMemory, match="lower --max-tokens"):
        load_model(checkpoint(), ModelSettings().with_room(2**20, 2**20))
