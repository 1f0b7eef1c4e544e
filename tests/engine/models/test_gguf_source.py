import json
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from gguf import GGMLQuantizationType as Kind
from gguf.quants import dequantize, quantize
from tests.engine.models.ggml_blocks import BLOCK_BYTES, VALUE, VALUES
from tests.engine.models.gguf_files import (
    Array,
    convert,
    converted_metadata,
    converted_weights,
    interleaved,
    write,
)
from tests.engine.models.tiny import CASES

from outrider.engine.models.base import Rows
from outrider.engine.models.eager import EagerDecoder
from outrider.engine.models.gguf_source import GgufSource
from outrider.engine.models.rope import frequencies
from outrider.engine.models.safetensors_source import SafetensorsSource
from outrider.engine.models.source import WeightSource
from outrider.engine.tokenizer import Tokenizer
from outrider.errors import CorruptFile, OutriderError, UnsupportedModel

QUERY = "model.layers.1.self_attn.q_proj.weight"
EMBEDDING = "model.embed_tokens.weight"
QUANTIZED = (Kind.F16, Kind.BF16, Kind.Q8_0, Kind.Q4_0, Kind.Q4_1, Kind.Q5_1)
# Every row a whole number of quantization blocks.
SIZES = {"intermediate_size": 96, "num_hidden_layers": 2}
# What GGUF can say: windows of Qwen are not among it, and Gemma's query scale is its head size.
CONVERTED = [case for case in CASES if not case.startswith(("qwen 2, w", "qwen 3, w"))]


@pytest.fixture(scope="module")
def folder(checkpoint: Callable[..., Path]) -> Path:
    return checkpoint(**SIZES)


@pytest.fixture(scope="module")
def stored(folder: Path) -> dict[str, Array]:
    return converted_weights(folder)


@pytest.fixture(scope="module")
def metadata(folder: Path) -> dict[str, Any]:
    return converted_metadata(json.loads((folder / "config.json").read_text()))


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "tiny.gguf"


def logits(source: WeightSource) -> torch.Tensor:
    cpu = torch.device("cpu")
    model = EagerDecoder(source, dtype=torch.float32, num_blocks=2, max_length=100, device=cpu)
    return model.forward(Rows(range(100), range(100), [0] * 100, [[1, 0]], range(100)))


def test_the_helper_interleaves_as_llama_cpp_does() -> None:
    rows = np.arange(8, dtype=np.float32).reshape(8, 1)
    assert interleaved(rows, 2).ravel().tolist() == [0, 2, 1, 3, 4, 6, 5, 7]


@pytest.mark.parametrize("case", CONVERTED)
def test_every_family_is_the_same_model_in_both_formats(
    case: str, checkpoint: Callable[..., Path], file: Path
) -> None:
    settings = CASES[case] | ({"query_pre_attn_scalar": 64} if case.startswith("gemma") else {})
    folder = checkpoint(**settings)
    original, source = SafetensorsSource(folder), GgufSource(convert(folder, file))
    for name in original.config.weight_names:
        assert torch.equal(source.tensor(name), original.tensor(name)), name
    # Numbers in the metadata are float32, and a llama3 rope comes as its result.
    epsilon, ropes = original.config.rms_norm_eps, original.config.ropes
    assert source.config.rms_norm_eps == pytest.approx(epsilon)
    assert replace(source.config, rms_norm_eps=epsilon, ropes=ropes) == replace(
        original.config, eos_token_ids=()
    )
    torch.testing.assert_close(logits(source), logits(original), atol=1e-4, rtol=0)


def test_a_llama3_rope_comes_as_a_divisor_for_each_pair(
    checkpoint: Callable[..., Path], file: Path
) -> None:
    folder = checkpoint(**CASES["llama, llama3 rope"])
    (rope,) = GgufSource(convert(folder, file)).config.ropes
    (expected,) = SafetensorsSource(folder).config.ropes
    assert (rope.kind, rope.divisors[0], rope.divisors[-1]) == ("divisors", 1.0, 8.0)
    torch.testing.assert_close(frequencies(rope, 64), frequencies(expected, 64))


@pytest.mark.parametrize("tied", [False, True])
def test_a_head_that_the_file_lacks_is_tied(
    tied: bool, checkpoint: Callable[..., Path], file: Path
) -> None:
    source = GgufSource(convert(checkpoint(**SIZES, tie_word_embeddings=tied), file))
    assert source.config.tied_embeddings is tied


@pytest.mark.parametrize("kind", QUANTIZED, ids=lambda kind: kind.name)
def test_quantized_weights_are_those_that_the_stored_blocks_stand_for(
    kind: Kind, folder: Path, file: Path
) -> None:
    original, source = SafetensorsSource(folder), GgufSource(convert(folder, file, kind))
    for name in original.config.weight_names:
        weight = original.tensor(name).numpy()
        # A row is quantized by itself, so that the order of the rows does not matter.
        rounded = dequantize(quantize(weight, kind), kind) if weight.ndim > 1 else weight
        seen = source.tensor(name)
        assert seen.dtype == torch.float32
        assert np.array_equal(seen.numpy(), rounded), name


def test_blocks_of_4_bits_stand_for_16_steps_by_hand(metadata: dict[str, Any], file: Path) -> None:
    # A block of 32 values in Q4_1 is a scale d and a minimum m; each value is d * q + m.
    levels = np.tile(np.arange(16, dtype=np.float32), 2) * 0.5 - 3.0
    embedding = {"token_embd.weight": np.tile(levels, (199, 4))}
    path = write(file, embedding, Kind.Q4_1, metadata=metadata)
    assert GgufSource(path).tensor(EMBEDDING)[5].tolist() == levels.tolist() * 4


@pytest.mark.parametrize("kind", VALUE)
def test_k_quantized_weights_are_those_of_ggmls_layout(
    kind: str, metadata: dict[str, Any], file: Path
) -> None:
    rows, columns, size = 6, 2 * VALUES, BLOCK_BYTES[kind]
    random = np.random.default_rng(8)
    blocks = random.integers(0, 256, (rows, 2, size), np.uint8)
    for place in {"Q6_K": [208]}.get(kind, [0, 2]):
        scales = random.uniform(-2, 2, (rows, 2)).astype("<f2")
        blocks[:, :, place : place + 2] = scales[..., None].view(np.uint8)
    embedding = {"token_embd.weight": blocks.reshape(rows, -1)}
    wide = metadata | {"llama.embedding_length": columns}
    write(file, embedding, Kind[kind], metadata=wide)
    expected = [
        [VALUE[kind](block.tobytes(), i) for block in row for i in range(VALUES)] for row in blocks
    ]
    seen = GgufSource(file).tensor(EMBEDDING)
    torch.testing.assert_close(seen, torch.tensor(expected), rtol=1e-6, atol=1e-4)


def without(names: Mapping[str, Any], *left_out: str) -> dict[str, Any]:
    return {name: value for name, value in names.items() if name not in left_out}


def failure(act: Callable[[], object]) -> OutriderError:
    """The one-line error that `act` ends with."""
    with pytest.raises(OutriderError) as caught:
        act()
    assert "\n" not in str(caught.value)
    return caught.value


@pytest.mark.parametrize(
    ("name", "there"), [("model.norm.weight", "output_norm.weight"), (QUERY, "blk.1.attn_q.weight")]
)
def test_a_missing_tensor_is_named(
    name: str, there: str, stored: dict[str, Array], metadata: dict[str, Any], file: Path
) -> None:
    source = GgufSource(write(file, without(stored, there), metadata=metadata))
    error = failure(lambda: source.tensor(name))
    assert isinstance(error, CorruptFile)
    assert f"has no tensor {there}" in error.seen


def test_a_missing_embedding_is_found_at_once(
    stored: dict[str, Array], metadata: dict[str, Any], file: Path
) -> None:
    path = write(file, without(stored, "token_embd.weight"), metadata=metadata)
    error = failure(lambda: GgufSource(path))
    assert isinstance(error, CorruptFile)
    assert "has no tensor token_embd.weight" in error.seen


@pytest.mark.parametrize("name", [QUERY, EMBEDDING, "model.norm.weight"])
def test_a_tensor_of_another_shape_than_the_metadata_says_is_corrupt(
    name: str, stored: dict[str, Array], metadata: dict[str, Any], file: Path
) -> None:
    other = metadata | {"llama.embedding_length": 96, "llama.attention.head_count": 2}
    source = GgufSource(write(file, stored, metadata=other))
    error = failure(lambda: source.tensor(name))
    assert isinstance(error, CorruptFile)
    assert f"{name} in {file} is [" in error.seen


@pytest.mark.parametrize("share", [0.0, 0.0001, 0.005, 0.02, 0.3, 0.7, 0.999])
def test_a_file_that_is_cut_short_is_corrupt(share: float, folder: Path, file: Path) -> None:
    content = convert(folder, file).read_bytes()
    file.write_bytes(content[: int(share * len(content))])
    error = failure(lambda: GgufSource(file))
    assert isinstance(error, CorruptFile)
    assert f"{file} does not parse (" in error.seen


def test_a_file_of_another_kind_is_corrupt(file: Path) -> None:
    file.write_text("<!doctype html>\n<title>Not found</title>\n" * 100)
    assert isinstance(failure(lambda: GgufSource(file)), CorruptFile)


def test_another_architecture_is_refused(
    stored: dict[str, Array], metadata: dict[str, Any], file: Path
) -> None:
    path = write(file, stored, metadata=metadata, architecture="gemma2")
    error = failure(lambda: GgufSource(path))
    assert isinstance(error, UnsupportedModel)
    assert error.seen == "the model family is 'gemma2'"
    assert error.expected.startswith("one of llama, ")


@pytest.mark.parametrize(
    "name",
    [
        "blk.1.attn_q.bias",
        "blk.1.attn_q_norm.weight",
        "blk.0.ffn_gate_exps.weight",
        "blk.2.attn_q.weight",
        "output.bias",
    ],
)
def test_a_tensor_that_would_go_unused_is_refused(
    name: str, stored: dict[str, Array], metadata: dict[str, Any], file: Path
) -> None:
    path = write(file, stored | {name: np.zeros(64, np.float32)}, metadata=metadata)
    error = failure(lambda: GgufSource(path))
    assert isinstance(error, UnsupportedModel)
    assert f"holds {name}" in error.seen


def test_divisors_of_other_heads_are_corrupt(
    stored: dict[str, Array], metadata: dict[str, Any], file: Path
) -> None:
    divisors = {"rope_freqs.weight": np.ones(16, np.float32)}
    path = write(file, stored | divisors, metadata=metadata)
    error = failure(lambda: GgufSource(path))
    assert isinstance(error, CorruptFile)
    assert error.seen == f"rope_freqs.weight in {file} is [16]"


def test_positions_are_scaled_in_one_way_only(
    stored: dict[str, Array], metadata: dict[str, Any], file: Path
) -> None:
    divisors = {"rope_freqs.weight": np.ones(32, np.float32)}
    scaling = {"llama.rope.scaling.type": "linear", "llama.rope.scaling.factor": 2.0}
    path = write(file, stored | divisors, metadata=metadata | scaling)
    error = failure(lambda: GgufSource(path))
    assert isinstance(error, UnsupportedModel)
    assert "in two ways" in error.seen


@pytest.mark.slow
def test_the_real_model_has_the_logits_that_transformers_gives_it(smollm2: Path) -> None:
    from transformers import AutoModelForCausalLM  # noqa: PLC0415  takes seconds

    tokens = Tokenizer(smollm2).encode_chat(
        [{"role": "user", "content": "Why does the moon look larger when it is near the horizon?"}]
    )
    source = GgufSource(smollm2)
    count = len(tokens)
    assert count > 20
    cpu = torch.device("cpu")
    model = EagerDecoder(source, dtype=torch.float32, num_blocks=2, max_length=count, device=cpu)
    seen = model.forward(Rows(tokens, range(count), [0] * count, [[0, 1]], range(count)))
    reference = AutoModelForCausalLM.from_pretrained(
        smollm2.parent, gguf_file=smollm2.name, dtype=torch.float32, local_files_only=True
    )
    with torch.inference_mode():
        expected = reference(torch.tensor([tokens])).logits[0]
    assert (seen - expected).abs().max() < 2e-3
