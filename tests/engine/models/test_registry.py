from collections.abc import Callable
from pathlib import Path

import psutil
import pytest
import torch
from tests.engine.models.configs import config_of

from outrider.engine.kernels.formats.tiles import tiles_available
from outrider.engine.models.backends.torch import TorchBackend
from outrider.engine.models.base import Rows
from outrider.engine.models.eager import EagerDecoder
from outrider.engine.models.fused import FusedDecoder
from outrider.engine.models.graphs import CudaGraphs
from outrider.engine.models.registry import BACKENDS, check_memory, load_model, resolve
from outrider.engine.models.safetensors_source import SafetensorsSource
from outrider.engine.models.settings import ModelSettings
from outrider.errors import CorruptFile, InvalidSetting, NotEnoughMemory

GIB = 2**30
# 1.25 x 2^30 weights, most of them in the embedding; keys and values of a token take 1 MiB in
# float32.
LARGE = config_of(
    vocab_size=2**20,
    hidden_size=1024,
    num_layers=32,
    num_kv_heads=64,
    head_dim=64,
    tied_embeddings=True,
)
HELD_GIB = 0.5 if tiles_available() else 1.0
"""What 1,024 tokens of it take beside bfloat16 weights."""

EACH = [(name, dtype) for name, backend in BACKENDS.items() for dtype in backend.dtypes]


@pytest.mark.parametrize(("backend", "dtype"), EACH)
def test_names_that_are_given_stay_as_they_are(backend: str, dtype: str) -> None:
    assert resolve(ModelSettings(backend=backend, dtype=dtype)) == (backend, dtype)


def test_auto_stands_for_names_that_exist() -> None:
    backend, dtype = resolve(ModelSettings())
    assert backend in BACKENDS
    assert dtype in BACKENDS[backend].dtypes
    assert backend == ("torch" if torch.cuda.is_available() else "fused")


def test_auto_takes_bfloat16_for_the_fused_kernels_on_any_cpu() -> None:
    assert resolve(ModelSettings(backend="fused")) == ("fused", "bfloat16")


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        (ModelSettings(backend="gpu"), "--backend gpu; expected auto or one of fused, torch;"),
        (
            ModelSettings(backend="fused", dtype="int2"),
            "--dtype int2; expected auto or one of bfloat16, .*, int4 with --backend fused;",
        ),
        (
            ModelSettings(backend="torch", dtype="int8"),
            "--dtype int8; expected auto or one of bfloat16, float32 with --backend torch;",
        ),
    ],
)
def test_an_unknown_name_is_refused_with_the_valid_ones(
    settings: ModelSettings, message: str, tmp_path: Path
) -> None:
    with pytest.raises(InvalidSetting, match=message):
        resolve(settings)
    with pytest.raises(InvalidSetting, match=message):
        load_model(tmp_path, settings)


@pytest.mark.parametrize(("backend", "dtype"), [*EACH, ("auto", "float32"), ("auto", "auto")])
def test_a_model_is_loaded_as_the_settings_say(
    backend: str, dtype: str, checkpoint: Callable[..., Path]
) -> None:
    settings = ModelSettings(backend=backend, dtype=dtype, threads=2, num_blocks=3, max_length=9)
    model = load_model(checkpoint(), settings)
    kinds = {"fused": FusedDecoder, "torch": EagerDecoder}
    assert isinstance(model, kinds[resolve(settings)[0]])
    assert model.max_length == 9
    assert model.num_blocks == 3
    assert model.config == SafetensorsSource(checkpoint()).config
    # The last block exists.
    rows = Rows([5] * 9, range(9), [0] * 9, [[2]], [8])
    assert model.forward(rows).shape == (1, model.config.vocab_size)


@pytest.mark.parametrize("enforce_eager", [False, True])
def test_graphs_are_for_gpus_and_can_be_turned_off(
    enforce_eager: bool, checkpoint: Callable[..., Path]
) -> None:
    model = load_model(checkpoint(), ModelSettings("torch", enforce_eager=enforce_eager))
    assert isinstance(model, EagerDecoder)
    graphs = isinstance(model._runner, CudaGraphs)
    assert graphs == (torch.cuda.is_available() and not enforce_eager)


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
        # 1.25 GiB of weights times 2 or 4 bytes, 8 bytes for each of the 1 GiB of the embedding
        # to pack it, and 1 GiB for each sequence, or half as much in tiles.
        ("bfloat16", 1, f"{10.5 + HELD_GIB:.1f} GiB for weights and cache"),
        ("bfloat16", 4, f"{10.5 + 4 * HELD_GIB:.1f} GiB for weights and cache"),
        ("float32", 1, "14.0 GiB for weights and cache"),
        # A quarter of the weights in 5 bits, the head in 8.5, the embedding in 16.
        ("int4", 1, "12.2 GiB for weights and cache"),
    ],
)
def test_too_little_memory_is_told_with_what_is_free_and_what_is_needed(
    dtype: str, sequences: int, expected: str
) -> None:
    settings = ModelSettings("fused", dtype).with_room(1024, sequences)
    with pytest.raises(NotEnoughMemory) as caught:
        check_memory(LARGE, settings, int(1.25 * GIB))
    assert caught.value.seen == "1.2 GiB of memory are free"
    assert caught.value.expected == expected


def test_memory_is_enough_from_the_very_byte_on_that_is_needed() -> None:
    settings = ModelSettings("fused", "bfloat16").with_room(1024)
    needed = LARGE.parameters * 2 + 8 * LARGE.vocab_size * LARGE.hidden_size + int(HELD_GIB * GIB)
    check_memory(LARGE, settings, needed)
    with pytest.raises(NotEnoughMemory):
        check_memory(LARGE, settings, needed - 1)


@pytest.mark.parametrize(
    ("backend", "dtype", "size", "values", "bytes_per_value"),
    [
        ("fused", "bfloat16", 64, 64 + 64, 2 if tiles_available() else 4),
        ("fused", "int8", 64, 64 + 64, 4),
        ("fused", "float32", 80, 80 + 96, 4),  # values fill panels of 32
        ("torch", "float32", 80, 80 + 80, 4),
        ("torch", "bfloat16", 80, 80 + 80, 2),
    ],
)
def test_a_token_takes_keys_and_values_in_every_layer_as_its_backend_keeps_them(
    backend: str, dtype: str, size: int, values: int, bytes_per_value: int
) -> None:
    config = config_of(num_layers=30, num_kv_heads=3, head_dim=size)
    taken = BACKENDS[backend].kv_bytes_per_token(config, dtype)
    assert taken == 30 * 3 * values * bytes_per_value


def test_free_memory_is_that_of_the_device_that_computes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "mem_get_info", lambda: (3 * GIB, 80 * GIB))
    assert BACKENDS["torch"].free_bytes() == 3 * GIB
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    of_this_machine = psutil.virtual_memory().total
    for backend in BACKENDS.values():
        assert 0 < backend.free_bytes() <= of_this_machine


def test_a_model_is_held_to_what_its_backend_has_free(
    checkpoint: Callable[..., Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(TorchBackend, "free_bytes", lambda _: 1_000)
    load_model(checkpoint(), ModelSettings("fused", "float32", num_blocks=1, max_length=9))
    with pytest.raises(NotEnoughMemory, match=r"0\.0 GiB of memory are free"):
        load_model(checkpoint(), ModelSettings("torch", "float32", num_blocks=1, max_length=9))


def test_a_model_that_does_not_fit_is_not_loaded(checkpoint: Callable[..., Path]) -> None:
    with pytest.raises(NotEnoughMemory, match="lower --max-tokens"):
        load_model(checkpoint(), ModelSettings().with_room(2**20, 2**20))
