from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import gguf
import numpy as np
import pytest
import torch
from gguf import GGMLQuantizationType as Kind
from gguf.quants import dequantize, quantize

from outrider.engine.models.base import Rows
from outrider.engine.models.config import DecoderConfig
from outrider.engine.models.fused import FusedLlama
from outrider.engine.models.gguf_source import GgufSource
from outrider.engine.models.safetensors_source import SafetensorsSource
from outrider.engine.tokenizer import Tokenizer
from outrider.errors import CorruptFile, OutriderError, UnsupportedModel

Array = np.ndarray[Any, np.dtype[np.float32]]
LAYER_NAMES = {
    "input_layernorm": "attn_norm",
    "self_attn.q_proj": "attn_q",
    "self_attn.k_proj": "attn_k",
    "self_attn.v_proj": "attn_v",
    "self_attn.o_proj": "attn_output",
    "post_attention_layernorm": "ffn_norm",
    "mlp.gate_proj": "ffn_gate",
    "mlp.up_proj": "ffn_up",
    "mlp.down_proj": "ffn_down",
}
QUERY = "model.layers.1.self_attn.q_proj.weight"
QUANTIZED = (Kind.F16, Kind.BF16, Kind.Q8_0, Kind.Q4_0, Kind.Q4_1, Kind.Q5_1)
# Every row a whole number of quantization blocks.
SIZES = {"intermediate_size": 96, "num_hidden_layers": 2}
METADATA: dict[str, int | float] = {
    "llama.embedding_length": 128,
    "llama.block_count": 2,
    "llama.feed_forward_length": 96,
    "llama.attention.head_count": 4,
    "llama.attention.head_count_kv": 2,
    "llama.attention.key_length": 64,
    "llama.attention.layer_norm_rms_epsilon": 1e-4,
    "llama.rope.freq_base": 5_000.0,
    "llama.context_length": 512,
}


def gguf_name(name: str) -> str:
    """What llama.cpp calls the weight with the Hugging Face name `name`."""
    ends = {"model.embed_tokens": "token_embd", "model.norm": "output_norm", "lm_head": "output"}
    stem = name.removesuffix(".weight")
    if stem in ends:
        return f"{ends[stem]}.weight"
    layer, part = stem.removeprefix("model.layers.").split(".", 1)
    return f"blk.{layer}.{LAYER_NAMES[part]}.weight"


def interleaved(rows: Array, heads: int) -> Array:
    """q or k as llama.cpp stores it: in each head, row i of the first half, then of the second."""
    halves = rows.reshape(heads, 2, -1, rows.shape[1])
    return np.ascontiguousarray(halves.transpose(0, 2, 1, 3)).reshape(rows.shape)


def stored_weights(folder: Path) -> dict[str, Array]:
    """Everything in a checkpoint's folder under its GGUF name, q and k interleaved."""
    source = SafetensorsSource(folder)
    stored = {}
    for name in source._file_of:
        weight = source.tensor(name).numpy()
        if "q_proj" in name:
            weight = interleaved(weight, 4)
        if "k_proj" in name:
            weight = interleaved(weight, 2)
        stored[gguf_name(name)] = weight
    return stored


def write(
    path: Path,
    weights: Mapping[str, Array],
    kind: Kind = Kind.F32,
    *,
    metadata: Mapping[str, Any] = METADATA,
    architecture: str = "llama",
) -> Path:
    """A GGUF file whose matrices are stored as `kind`."""
    writer = gguf.GGUFWriter(path, architecture)
    for key, value in metadata.items():
        {int: writer.add_uint32, float: writer.add_float32, str: writer.add_string}[type(value)](
            key, value
        )
    for name, weight in weights.items():
        chosen = kind if weight.ndim > 1 else Kind.F32
        writer.add_tensor(name, quantize(weight, chosen), raw_dtype=chosen)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


@pytest.fixture(scope="module")
def folder(checkpoint: Callable[..., Path]) -> Path:
    return checkpoint(**SIZES)


@pytest.fixture(scope="module")
def stored(folder: Path) -> dict[str, Array]:
    return stored_weights(folder)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "tiny.gguf"


def logits(source: GgufSource | SafetensorsSource) -> torch.Tensor:
    model = FusedLlama(source, dtype=torch.float32, slots=1, capacity=20, threads=1)
    return model.forward(Rows(range(20), range(20), [0] * 20, range(20)))


def test_the_helper_interleaves_as_llama_cpp_does() -> None:
    rows = np.arange(8, dtype=np.float32).reshape(8, 1)
    assert interleaved(rows, 2).ravel().tolist() == [0, 2, 1, 3, 4, 6, 5, 7]


def test_float32_weights_come_back_as_they_were(
    folder: Path, stored: dict[str, Array], file: Path
) -> None:
    original, source = SafetensorsSource(folder), GgufSource(write(file, stored))
    assert len(original._file_of) == len(stored) == 21
    for name in original._file_of:
        assert torch.equal(source.tensor(name), original.tensor(name)), name


def test_the_config_is_that_of_the_metadata(
    folder: Path, stored: dict[str, Array], file: Path
) -> None:
    config = GgufSource(write(file, stored)).config
    expected = SafetensorsSource(folder).config
    assert config.rms_norm_eps == pytest.approx(expected.rms_norm_eps)
    assert config == DecoderConfig(
        family="llama",
        vocab_size=199,
        hidden_size=128,
        intermediate_size=96,
        num_layers=2,
        num_heads=4,
        num_kv_heads=2,
        head_dim=64,
        rms_norm_eps=config.rms_norm_eps,
        rope_theta=5_000.0,
        max_positions=512,
        tied_embeddings=False,
    )


def test_what_the_metadata_may_leave_out_has_its_usual_value(
    stored: dict[str, Array], file: Path
) -> None:
    optional = ("head_count_kv", "key_length", "freq_base")
    metadata = {key: value for key, value in METADATA.items() if not key.endswith(optional)}
    config = GgufSource(write(file, stored, metadata=metadata)).config
    assert (config.num_kv_heads, config.head_dim, config.rope_theta) == (4, 32, 10_000.0)
    assert config.eos_token_ids == ()


def test_the_end_of_text_is_read(stored: dict[str, Array], file: Path) -> None:
    metadata = METADATA | {"tokenizer.ggml.eos_token_id": 7}
    assert GgufSource(write(file, stored, metadata=metadata)).config.eos_token_ids == (7,)


@pytest.mark.parametrize("tied", [False, True])
def test_logits_do_not_depend_on_the_format(
    tied: bool, checkpoint: Callable[..., Path], file: Path
) -> None:
    folder = checkpoint(**SIZES, tie_word_embeddings=tied)
    weights = stored_weights(folder)
    assert ("output.weight" in weights) is not tied
    source = GgufSource(write(file, weights))
    assert source.config.tied_embeddings is tied
    assert torch.equal(logits(source), logits(SafetensorsSource(folder)))


@pytest.mark.parametrize("kind", QUANTIZED, ids=lambda kind: kind.name)
def test_quantized_weights_are_those_that_the_stored_blocks_stand_for(
    kind: Kind, folder: Path, stored: dict[str, Array], file: Path
) -> None:
    original, source = SafetensorsSource(folder), GgufSource(write(file, stored, kind))
    for name in original._file_of:
        weight = original.tensor(name).numpy()
        # A row is quantized by itself, so that the order of the rows does not matter.
        rounded = dequantize(quantize(weight, kind), kind) if weight.ndim > 1 else weight
        seen = source.tensor(name)
        assert seen.dtype == torch.float32
        assert np.array_equal(seen.numpy(), rounded), name


def test_blocks_of_4_bits_stand_for_16_steps_by_hand(file: Path) -> None:
    # A block of 32 values in Q4_1 is a scale d and a minimum m; each value is d * q + m.
    levels = np.tile(np.arange(16, dtype=np.float32), 2) * 0.5 - 3.0
    path = write(file, {"token_embd.weight": np.tile(levels, (199, 4))}, Kind.Q4_1)
    embedding = GgufSource(path).tensor("model.embed_tokens.weight")
    assert embedding[5].tolist() == levels.tolist() * 4


def without(names: Mapping[str, Any], *left_out: str) -> dict[str, Any]:
    return {name: value for name, value in names.items() if name not in left_out}


def failure(act: Callable[[], object]) -> OutriderError:
    """The one-line error that `act` ends with."""
    with pytest.raises(OutriderError) as caught:
        act()
    assert "\n" not in str(caught.value)
    return caught.value


@pytest.mark.parametrize("name", ["model.norm.weight", QUERY])
def test_a_missing_tensor_is_named(name: str, stored: dict[str, Array], file: Path) -> None:
    source = GgufSource(write(file, without(stored, gguf_name(name))))
    error = failure(lambda: source.tensor(name))
    assert isinstance(error, CorruptFile)
    assert f"has no tensor {gguf_name(name)}" in error.seen


def test_a_missing_embedding_is_found_at_once(stored: dict[str, Array], file: Path) -> None:
    path = write(file, without(stored, "token_embd.weight"))
    error = failure(lambda: GgufSource(path))
    assert isinstance(error, CorruptFile)
    assert "has no tensor token_embd.weight" in error.seen


@pytest.mark.parametrize(
    "key", [key for key in METADATA if not key.endswith(("_kv", "key_length", "freq_base"))]
)
def test_a_missing_size_is_named(key: str, stored: dict[str, Array], file: Path) -> None:
    path = write(file, stored, metadata=without(METADATA, key))
    error = failure(lambda: GgufSource(path))
    assert isinstance(error, CorruptFile)
    assert f"lacks {key}" in error.seen


@pytest.mark.parametrize("name", [QUERY, "model.embed_tokens.weight", "model.norm.weight"])
def test_a_tensor_of_another_shape_than_the_metadata_says_is_corrupt(
    name: str, stored: dict[str, Array], file: Path
) -> None:
    metadata = METADATA | {"llama.embedding_length": 96, "llama.attention.head_count": 2}
    source = GgufSource(write(file, stored, metadata=metadata))
    error = failure(lambda: source.tensor(name))
    assert isinstance(error, CorruptFile)
    assert f"{name} in {file} is [" in error.seen


@pytest.mark.parametrize("share", [0.0, 0.0001, 0.005, 0.02, 0.3, 0.7, 0.999])
def test_a_file_that_is_cut_short_is_corrupt(
    share: float, stored: dict[str, Array], file: Path
) -> None:
    content = write(file, stored).read_bytes()
    file.write_bytes(content[: int(share * len(content))])
    error = failure(lambda: GgufSource(file))
    assert isinstance(error, CorruptFile)
    assert f"{file} does not parse (" in error.seen


def test_a_file_of_another_kind_is_corrupt(file: Path) -> None:
    file.write_text("<!doctype html>\n<title>Not found</title>\n" * 100)
    assert isinstance(failure(lambda: GgufSource(file)), CorruptFile)


def test_another_architecture_is_refused(stored: dict[str, Array], file: Path) -> None:
    path = write(file, stored, architecture="gemma3")
    error = failure(lambda: GgufSource(path))
    assert isinstance(error, UnsupportedModel)
    assert (error.seen, error.expected) == ("the model family is 'gemma3'", "one of llama")


@pytest.mark.parametrize("scaling", ["linear", "yarn", "longrope"])
def test_scaled_positions_are_refused(scaling: str, stored: dict[str, Array], file: Path) -> None:
    path = write(file, stored, metadata=METADATA | {"llama.rope.scaling.type": scaling})
    error = failure(lambda: GgufSource(path))
    assert isinstance(error, UnsupportedModel)
    assert "scales its rotary positions" in error.seen


def test_scaling_that_is_none_is_taken(stored: dict[str, Array], file: Path) -> None:
    metadata = METADATA | {"llama.rope.scaling.type": "none"}
    assert GgufSource(write(file, stored, metadata=metadata)).config.head_dim == 64


@pytest.mark.parametrize(
    ("name", "seen"),
    [
        ("rope_freqs.weight", "scales its rotary positions"),
        ("blk.1.attn_q.bias", "holds blk.1.attn_q.bias"),
        ("blk.0.ffn_gate_exps.weight", "holds blk.0.ffn_gate_exps.weight"),
        ("output.bias", "holds output.bias"),
    ],
)
def test_a_tensor_that_would_go_unused_is_refused(
    name: str, seen: str, stored: dict[str, Array], file: Path
) -> None:
    path = write(file, stored | {name: np.zeros(64, np.float32)})
    error = failure(lambda: GgufSource(path))
    assert isinstance(error, UnsupportedModel)
    assert seen in error.seen


@pytest.mark.slow
def test_the_real_model_has_the_logits_that_transformers_gives_it(smollm2: Path) -> None:
    from transformers import AutoModelForCausalLM  # noqa: PLC0415  takes seconds

    tokens = Tokenizer(smollm2).encode_chat(
        [{"role": "user", "content": "Why does the moon look larger when it is near the horizon?"}]
    )
    source = GgufSource(smollm2)
    count = len(tokens)
    assert count > 20
    model = FusedLlama(source, dtype=torch.float32, slots=1, capacity=count, threads=2)
    seen = model.forward(Rows(tokens, range(count), [0] * count, range(count)))
    reference = AutoModelForCausalLM.from_pretrained(
        smollm2.parent, gguf_file=smollm2.name, dtype=torch.float32, local_files_only=True
    )
    with torch.inference_mode():
        expected = reference(torch.tensor([tokens])).logits[0]
    assert (seen - expected).abs().max() < 2e-3
