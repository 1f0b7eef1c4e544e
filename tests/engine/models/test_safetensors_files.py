import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file

from outrider.engine.models.safetensors_files import INDEX_FILE, find_tensors, refuse_pickled
from outrider.errors import CorruptFile, UnsupportedModel

Checkpoint = Callable[..., Path]


@pytest.fixture
def folder(checkpoint: Checkpoint, tmp_path: Path) -> Path:
    """A copy of a checkpoint in one file, to be damaged."""
    return Path(shutil.copytree(checkpoint(), tmp_path / "model"))


@pytest.fixture
def sharded(checkpoint: Checkpoint, tmp_path: Path) -> Path:
    """A copy of the same in several files."""
    return Path(shutil.copytree(checkpoint(shard_size="300KB"), tmp_path / "sharded"))


def test_tensors_may_lie_in_several_files(folder: Path, sharded: Path) -> None:
    whole, parts = find_tensors(folder), find_tensors(sharded)
    assert whole.keys() == parts.keys()
    assert len(set(parts.values())) > 2
    stored = load_file(folder / "model.safetensors")
    assert all(torch.equal(load_file(parts[name])[name], stored[name]) for name in stored)


def test_only_the_files_of_the_index_count(folder: Path, sharded: Path) -> None:
    expected = find_tensors(sharded)
    shutil.copy(folder / "model.safetensors", sharded / "consolidated.safetensors")
    assert find_tensors(sharded) == expected


def test_several_files_need_no_index(sharded: Path) -> None:
    expected = find_tensors(sharded)
    (sharded / INDEX_FILE).unlink()
    assert find_tensors(sharded) == expected


def test_a_missing_file_is_named(sharded: Path) -> None:
    missing = sorted(sharded.glob("*.safetensors"))[1]
    count = len(list(sharded.glob("*.safetensors")))
    missing.unlink()
    expected = f"has no {missing.name}; expected the {count} files that its index names"
    with pytest.raises(CorruptFile, match=expected):
        find_tensors(sharded)


@pytest.mark.parametrize(
    "content", ["", "[]", "{}", '{"weight_map": 5}', '{"weight_map": {"a": "../b.safetensors"}}']
)
def test_an_index_that_names_no_files_of_the_folder_is_corrupt(sharded: Path, content: str) -> None:
    (sharded / INDEX_FILE).write_text(content)
    with pytest.raises(CorruptFile, match=f"{INDEX_FILE} "):
        find_tensors(sharded)


@pytest.mark.parametrize("name", ["pytorch_model.bin", "model.pt", "consolidated.00.pth"])
def test_pickled_weights_are_refused_in_one_line(folder: Path, name: str) -> None:
    (folder / "model.safetensors").rename(folder / name)
    with pytest.raises(
        UnsupportedModel, match=f"{name} is pickled, .*expected safetensors or GGUF"
    ):
        find_tensors(folder)
    refuse_pickled(folder / "model.gguf")


def test_a_folder_without_weights_is_corrupt(folder: Path) -> None:
    (folder / "model.safetensors").unlink()
    with pytest.raises(CorruptFile, match=r"has no \*.safetensors file"):
        find_tensors(folder)


@pytest.mark.parametrize("share", [0.0, 0.001, 0.5, 0.999])
def test_a_file_that_is_cut_short_is_corrupt(folder: Path, share: float) -> None:
    file = folder / "model.safetensors"
    content = file.read_bytes()
    file.write_bytes(content[: int(share * len(content))])
    with pytest.raises(CorruptFile, match=r"model.safetensors does not parse \(") as caught:
        find_tensors(folder)
    assert "\n" not in str(caught.value)
