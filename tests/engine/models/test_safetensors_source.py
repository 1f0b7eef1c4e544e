import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file
from tests.engine.models.tiny import CASES

from outrider.engine.models.families.registry import family_of
from outrider.engine.models.families.settings import Settings
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


def test_weights_are_those_of_the_folder_under_the_names_of_all_families(
    checkpoint: Checkpoint,
) -> None:
    source = SafetensorsSource(checkpoint())
    stored = load_file(checkpoint() / "model.safetensors")
    assert len(source.config.weight_names) == len(stored)
    for name in source.config.weight_names:
        there = name.replace("mlp_norm", "post_attention_layernorm")
        assert torch.equal(source.tensor(name), stored[there]), name


def test_the_config_is_that_of_the_folder(checkpoint: Checkpoint) -> None:
    stated = json.loads((checkpoint() / "config.json").read_text())
    assert SafetensorsSource(checkpoint()).config == family_of("llama").read(Settings(stated))


def test_norms_of_gemma_come_ready_to_multiply(checkpoint: Checkpoint) -> None:
    folder = checkpoint(**CASES["gemma 3"])
    source, stored = SafetensorsSource(folder), load_file(folder / "model.safetensors")
    layer = "model.layers.2"
    for ours, theirs in (
        ("model.norm", "model.norm"),
        (f"{layer}.input_layernorm", f"{layer}.input_layernorm"),
        (f"{layer}.self_attn.k_norm", f"{layer}.self_attn.k_norm"),
        (f"{layer}.attention_output_norm", f"{layer}.post_attention_layernorm"),
        (f"{layer}.mlp_norm", f"{layer}.pre_feedforward_layernorm"),
        (f"{layer}.mlp_output_norm", f"{layer}.post_feedforward_layernorm"),
    ):
        assert torch.equal(source.tensor(f"{ours}.weight"), 1 + stored[f"{theirs}.weight"])
    projection = f"{layer}.self_attn.q_proj.weight"
    assert torch.equal(source.tensor(projection), stored[projection])


def test_norms_with_an_offset_are_added_up_in_float32(
    checkpoint: Checkpoint, tmp_path: Path
) -> None:
    folder = shutil.copytree(checkpoint(**CASES["gemma 3"]), tmp_path / "model")
    rewrite(
        folder / "model.safetensors", **{"model.norm.weight": torch.full((128,), 2**-9).bfloat16()}
    )
    seen = SafetensorsSource(folder).tensor("model.norm.weight")
    assert torch.equal(seen, torch.full((128,), 1 + 2**-9))


@pytest.mark.parametrize("prefix", ["language_model.model.", "model.language_model."])
def test_the_text_part_of_a_model_that_sees_images_is_read(
    prefix: str, checkpoint: Checkpoint, tmp_path: Path
) -> None:
    text = checkpoint(**CASES["gemma 3, untied"])
    folder = shutil.copytree(text, tmp_path / "model")
    stated = json.loads((text / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps({"model_type": "gemma3", "text_config": stated}))
    head = prefix.removesuffix("model.") + "lm_head.weight"
    renamed = {
        head if name == "lm_head.weight" else name.replace("model.", prefix, 1): weight
        for name, weight in load_file(text / "model.safetensors").items()
    }
    save_file(renamed | {"vision_tower.x.weight": torch.ones(3)}, folder / "model.safetensors")
    seen, expected = SafetensorsSource(folder), SafetensorsSource(text)
    assert seen.config == expected.config
    for name in expected.config.weight_names:
        assert torch.equal(seen.tensor(name), expected.tensor(name)), name


def test_the_generation_config_adds_to_the_ends_of_text(folder: Path) -> None:
    assert SafetensorsSource(folder).config.eos_token_ids == ()
    stated = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps(stated | {"eos_token_id": 7}))
    for further, ends in (([7, 9], (7, 9)), (3, (7, 3)), (None, (7,))):
        (folder / "generation_config.json").write_text(json.dumps({"eos_token_id": further}))
        assert SafetensorsSource(folder).config.eos_token_ids == ends


@pytest.mark.parametrize("name", ["self_attn.q_proj.bias", "self_attn.q_norm.weight"])
def test_a_weight_that_would_go_unused_is_refused(folder: Path, name: str) -> None:
    rewrite(folder / "model.safetensors", **{f"model.layers.1.{name}": torch.zeros(256)})
    with pytest.raises(
        UnsupportedModel, match=f"holds model.layers.1.{name}; expected the weights"
    ):
        SafetensorsSource(folder)


def test_a_layer_more_than_the_config_says_is_refused(folder: Path) -> None:
    rewrite(folder / "model.safetensors", **{"model.layers.3.mlp.up_proj.weight": torch.zeros(1)})
    with pytest.raises(UnsupportedModel, match=r"holds model\.layers\.3\.mlp\.up_proj\.weight"):
        SafetensorsSource(folder)


def test_rotary_tables_of_old_checkpoints_are_passed_over(folder: Path) -> None:
    old = {"model.layers.1.self_attn.rotary_emb.inv_freq": torch.zeros(32)}
    rewrite(folder / "model.safetensors", **old)
    assert SafetensorsSource(folder).config.num_layers == 3


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


def test_a_missing_weight_is_named(folder: Path) -> None:
    rewrite(folder / "model.safetensors", **{QUERY: None})
    with pytest.raises(CorruptFile, match=f"has no tensor {QUERY}"):
        SafetensorsSource(folder).tensor(QUERY)


def test_a_weight_of_another_shape_than_the_config_says_is_corrupt(folder: Path) -> None:
    rewrite(folder / "model.safetensors", **{QUERY: torch.zeros(64, 128)})
    with pytest.raises(CorruptFile, match=r"q_proj.* is \[64, 128\]; expected \[256, 128\]"):
        SafetensorsSource(folder).tensor(QUERY)
