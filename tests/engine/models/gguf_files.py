"""GGUF files as llama.cpp's converter lays them out: its names, its keys, its order of rows.

`convert` turns a checkpoint of `tiny.CASES` into one; `write` stores anything.
"""

import json
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import gguf
import numpy as np
from gguf import GGMLQuantizationType as Kind
from gguf.quants import quantize
from safetensors.numpy import load_file

Array = np.ndarray[Any, np.dtype[np.float32]]

ARCHITECTURES = {
    "llama": gguf.MODEL_ARCH.LLAMA,
    "mistral": gguf.MODEL_ARCH.LLAMA,
    "qwen2": gguf.MODEL_ARCH.QWEN2,
    "qwen3": gguf.MODEL_ARCH.QWEN3,
    "gemma3_text": gguf.MODEL_ARCH.GEMMA3,
}


def write(
    path: Path,
    weights: Mapping[str, np.ndarray[Any, np.dtype[Any]]],
    kind: Kind = Kind.F32,
    *,
    metadata: Mapping[str, Any],
    architecture: str = "llama",
) -> Path:
    """A GGUF file whose matrices are stored as `kind`; metadata that is None is left out.

    Bytes are taken for matrices that are quantized already.
    """
    writer = gguf.GGUFWriter(path, architecture)
    add = {
        int: writer.add_uint32,
        float: writer.add_float32,
        str: writer.add_string,
        bool: writer.add_bool,
        list: writer.add_array,
    }
    for key, value in metadata.items():
        if value is not None:
            add[type(value)](key, value)
    for name, weight in weights.items():
        chosen = kind if weight.ndim > 1 else Kind.F32
        stored = weight if weight.dtype == np.uint8 else quantize(weight, chosen)
        writer.add_tensor(name, stored, raw_dtype=chosen)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


def convert(folder: Path, path: Path, kind: Kind = Kind.F32, **changes: Any) -> Path:
    """The checkpoint in `folder` as a GGUF file; `changes` are further metadata."""
    config = json.loads((folder / "config.json").read_text())
    architecture = gguf.MODEL_ARCH_NAMES[ARCHITECTURES[config["model_type"]]]
    return write(
        path,
        converted_weights(folder),
        kind,
        metadata=converted_metadata(config) | changes,
        architecture=architecture,
    )


def converted_weights(folder: Path) -> dict[str, Array]:
    """Everything in a checkpoint's folder under its GGUF name."""
    config = json.loads((folder / "config.json").read_text())
    architecture = ARCHITECTURES[config["model_type"]]
    names = gguf.get_tensor_name_map(architecture, config["num_hidden_layers"])
    stored = {}
    for name, original in load_file(folder / "model.safetensors").items():
        weight = original
        if architecture == gguf.MODEL_ARCH.LLAMA and "q_proj" in name:
            weight = interleaved(weight, config["num_attention_heads"])
        if architecture == gguf.MODEL_ARCH.LLAMA and "k_proj" in name:
            weight = interleaved(weight, config["num_key_value_heads"])
        if architecture == gguf.MODEL_ARCH.GEMMA3 and name.endswith("norm.weight"):
            weight = weight + 1
        stored[names.get_name(name, try_suffixes=(".weight", ".bias"))] = weight
    rope = config["rope_parameters"]
    if rope.get("rope_type") == "llama3":
        stored["rope_freqs.weight"] = llama3_divisors(rope, config["head_dim"])
    return stored


def interleaved(rows: Array, heads: int) -> Array:
    """q or k as llama.cpp stores it: in each head, row i of the first half, then of the second."""
    halves = rows.reshape(heads, 2, -1, rows.shape[1])
    return np.ascontiguousarray(halves.transpose(0, 2, 1, 3)).reshape(rows.shape)


def llama3_divisors(rope: Mapping[str, float], head_dim: int) -> Array:
    """By how much each pair is slowed, from its wavelength in positions."""
    trained, factor = rope["original_max_position_embeddings"], rope["factor"]
    low, high = rope["low_freq_factor"], rope["high_freq_factor"]
    divisors = []
    for pair in range(head_dim // 2):
        wavelength = 2 * math.pi * rope["rope_theta"] ** (2 * pair / head_dim)
        smooth = (trained / wavelength - low) / (high - low)
        if wavelength < trained / high:
            divisors.append(1.0)
        elif wavelength > trained / low:
            divisors.append(factor)
        else:
            divisors.append(1 / ((1 - smooth) / factor + smooth))
    return np.array(divisors, np.float32)


def converted_metadata(config: Mapping[str, Any]) -> dict[str, Any]:
    """What the converter writes of a config, under the architecture's keys."""
    name = gguf.MODEL_ARCH_NAMES[ARCHITECTURES[config["model_type"]]]
    heads = config["num_attention_heads"]
    head_dim = config.get("head_dim") or config["hidden_size"] // heads
    keys: dict[str, Any] = {
        "context_length": config["max_position_embeddings"],
        "embedding_length": config["hidden_size"],
        "block_count": config["num_hidden_layers"],
        "feed_forward_length": config["intermediate_size"],
        "attention.head_count": heads,
        "attention.head_count_kv": config["num_key_value_heads"],
        "attention.layer_norm_rms_epsilon": config["rms_norm_eps"],
        "rope.dimension_count": head_dim,
        "attention.key_length": head_dim,
        "attention.value_length": head_dim,
    }
    rope = config["rope_parameters"]
    if name == "gemma3":
        sliding = [each == "sliding_attention" for each in config["layer_types"]]
        keys["attention.sliding_window_pattern"] = sliding
        keys["rope.freq_base_swa"] = rope["sliding_attention"]["rope_theta"]
        rope = rope["full_attention"]
    if name == "gemma3" or (config["model_type"] == "mistral" and config["sliding_window"]):
        keys["attention.sliding_window"] = config["sliding_window"]
    keys["rope.freq_base"] = rope["rope_theta"]
    if rope["rope_type"] in ("linear", "yarn"):
        keys["rope.scaling.type"] = rope["rope_type"]
        keys["rope.scaling.factor"] = rope["factor"]
    if rope["rope_type"] == "yarn":
        trained = rope["original_max_position_embeddings"]
        keys["rope.scaling.original_context_length"] = trained
    return {f"{name}.{key}": value for key, value in keys.items()}
