from collections.abc import Callable
from pathlib import Path

import pytest

from outrider.engine.models.source import open_weights
from outrider.errors import CorruptFile, UnsupportedModel


def test_a_folder_is_read_as_safetensors(checkpoint: Callable[..., Path]) -> None:
    source = open_weights(checkpoint())
    assert source.tensor("model.norm.weight").shape == (source.config.hidden_size,)


def test_a_gguf_file_is_read_as_one(tmp_path: Path) -> None:
    file = tmp_path / "model.gguf"
    file.write_bytes(b"something else")
    with pytest.raises(CorruptFile, match="expected a complete GGUF file"):
        open_weights(file)


def test_any_other_file_is_refused_with_the_kinds_that_are_read(tmp_path: Path) -> None:
    file = tmp_path / "model.onnx"
    file.write_bytes(b"")
    with pytest.raises(UnsupportedModel, match="expected safetensors or GGUF weights"):
        open_weights(file)


def test_a_pickled_file_is_refused_for_what_it_is(tmp_path: Path) -> None:
    with pytest.raises(UnsupportedModel, match=r"is pickled.*; expected safetensors or GGUF"):
        open_weights(tmp_path / "pytorch_model.bin")
