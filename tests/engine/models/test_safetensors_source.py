import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file

from outrider.engine.models.config import from_huggingface
from outrider.engine.models.safetensors_source import SafetensorsSource
from outrider.errors import CorruptFile, UnsupportedModel

QUERY = "model.layers.1.self_attn.q_proj.weight"
Checkpoint = Callable[..., Path]


@pytest.fixture
def folder(checkpoint: Checkpoint, tmp_path: Path) -> Path:
    """A copy of a checkpoint, to be damaged."""
    return Path(shutil.copytree(checkpoint(), tmp_path / "model"))


def rewrite(file: Path, **changes: torch.Tensor | None) -> None:
    """Stores other tensors in a safetensors file; None leaves one out."""
    weights = load_file(file) | changes
    save_file({name: weight for name, weight in weights.items() if weight is not None}, file)


def test_weights_and_config_are_those_of_the_folder(checkpoint: Checkpoint) -> None:
    source = SafetensorsSource(checkpoint())
    stored = load_file(checkpoint() / "model.safetensors")
    assert all(torch.equal(source.tensor(name), weight) for name, weight in stored.items())
    assert source.config == from_huggingface(json.loads((checkpoint() / "config.json").read_text()))


def test_weights_may_lie_in_several_files(checkpoint: Checkpoint) -> None:
    sharded = checkpoint(shard_size="300KB")
    assert len(list(sharded.glob("*.safetensors"))) > 2
    whole, parts = SafetensorsSource(checkpoint()), SafetensorsSource(sharded)
    for name in load_file(checkpoint() / "model.safetensors"):
        assert torch.equal(whole.tensor(name), parts.tensor(name))


def test_weights_keep_the_type_they_are_stored_in(folder: Path) -> None:
    query = SafetensorsSource(folder).tensor(QUERY)
    rewrite(folder / "model.safetensors", **{QUERY: query.bfloat16()})
    assert SafetensorsSource(folder).tensor(QUERY).dtype == torch.bfloat16


def test_a_folder_without_a_config_is_no_model(folder: Path) -> None:
    (folder / "config.json").unlink()
    with pytest.raises(CorruptFile, match=r"has no config.json.*or give a .gguf file"):
        SafetensorsSource(folder)


@pytest.mark.parametrize("content", [b"", b'{"model_type": "lla', b"\xff\xfe\x00"])
def test_a_config_that_is_cut_short_or_not_text_is_corrupt(folder: Path, content: bytes) -> None:
    (folder / "config.json").write_bytes(content)
    with pytest.raises(CorruptFile, match=r"config\.json is not JSON"):
        SafetensorsSource(folder)


@pytest.mark.parametrize("content", [b"[]", b'"llama"', b"null"])
def test_a_config_that_is_no_object_is_corrupt(folder: Path, content: bytes) -> None:
    (folder / "config.json").write_bytes(content)
    with pytest.raises(CorruptFile, match=r"config\.json holds no JSON object"):
        SafetensorsSource(folder)


def test_another_family_is_refused(folder: Path) -> None:
    (folder / "config.json").write_text('{"model_type": "mamba"}')
    with pytest.raises(UnsupportedModel, match="family is 'mamba'"):
        SafetensorsSource(folder)


def test_a_folder_without_weights_is_corrupt(folder: Path) -> None:
    (folder / "model.safetensors").unlink()
    with pytest.raises(CorruptFile, match=r"has no \*.safetensors file"):
        SafetensorsSource(folder)


@pytest.mark.parametrize("share", [0.0, 0.001, 0.5, 0.999])
def test_a_file_that_is_cut_short_is_corrupt(folder: Path, share: float) -> None:
    file = folder / "model.safetensors"
    content = file.read_bytes()
    file.write_bytes(content[: int(share * len(content))])
    with pytest.raises(CorruptFile, match=r"model.safetensors does not parse \(") as caught:
        SafetensorsSource(folder)
    assert "\n" not in str(caught.value)


def test_a_missing_weight_is_named(folder: Path) -> None:
    rewrite(folder / "model.safetensors", **{QUERY: None})
    with pytest.raises(CorruptFile, match=f"has no tensor {QUERY}"):
        SafetensorsSource(folder).tensor(QUERY)


def test_a_weight_of_another_shape_than_the_config_says_is_corrupt(folder: Path) -> None:
    rewrite(folder / "model.safetensors", **{QUERY: torch.zeros(64, 128)})
    with pytest.raises(CorruptFile, match=r"q_proj.* is \[64, 128\]; expected \[256, 128\]"):
        SafetensorsSource(folder).tensor(QUERY)
