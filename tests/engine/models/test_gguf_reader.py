import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import gguf
import numpy as np
import pytest

from outrider.engine.models.gguf_reader import HeaderReader, values

NUMBERS = {
    "some.integers": [3, -1, 2**31 - 1],
    "some.fractions": [0.5, -2.25],
    "some.flags": [True, False, True],
    "some.number": [7],
}
STRINGS = ["", "a", "ü\n", "x" * 300]


def write(path: Path, build: Callable[[gguf.GGUFWriter], None]) -> Path:
    writer = gguf.GGUFWriter(path, "llama")
    build(writer)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


@pytest.fixture(scope="module")
def header(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Arrays of numbers and strings before, between and after single values, then two tensors."""

    def build(writer: gguf.GGUFWriter) -> None:
        writer.add_array("tokens", STRINGS)
        for key, numbers in NUMBERS.items():
            writer.add_array(key, numbers)
        writer.add_string("a.name", "größer")
        writer.add_array("more.tokens", STRINGS[::-1])
        writer.add_uint32("last", 5)
        writer.add_tensor("a", np.arange(6, dtype=np.float32).reshape(2, 3))
        writer.add_tensor("b", np.arange(8, dtype=np.float16))

    return write(tmp_path_factory.mktemp("gguf") / "header.gguf", build)


def test_everything_but_strings_in_arrays_reads_as_with_gguf(header: Path) -> None:
    ours, theirs = HeaderReader(header), gguf.GGUFReader(header)
    assert list(ours.fields) == list(theirs.fields)
    without_strings = [key for key in ours.fields if "tokens" not in key]
    assert {key: ours.get_field(key).contents() for key in without_strings} == {
        key: theirs.get_field(key).contents() for key in without_strings
    }
    assert ours.get_field("some.integers").contents() == NUMBERS["some.integers"]
    assert ours.get_field("last").contents() == 5
    for mine, other in zip(ours.tensors, theirs.tensors, strict=True):
        assert (mine.name, mine.tensor_type) == (other.name, other.tensor_type)
        assert np.array_equal(mine.data, other.data)


def test_a_vocabulary_is_one_part_however_long(tmp_path: Path) -> None:
    path = write(tmp_path / "v.gguf", lambda writer: writer.add_array("t", ["token"] * 1000))
    assert len(HeaderReader(path).get_field("t").parts) < 10


@pytest.mark.parametrize("share", [0.02, 0.1, 0.3, 0.5, 0.7, 0.9, 0.999])
def test_a_file_that_is_cut_short_does_not_read(header: Path, tmp_path: Path, share: float) -> None:
    last = HeaderReader(header).tensors[-1]
    end = last.data_offset + last.n_bytes  # then comes padding
    (tmp_path / "cut.gguf").write_bytes(header.read_bytes()[: int(share * end)])
    with pytest.raises((IndexError, ValueError, struct.error)):
        HeaderReader(tmp_path / "cut.gguf")


@pytest.mark.parametrize("kind", ["F32", "F16", "BF16", "Q8_0", "Q4_0", "Q4_1", "Q6_K"])
@pytest.mark.parametrize("shape", [(24, 512), (5, 256), (256,)])
def test_values_are_those_that_gguf_dequantizes(
    tmp_path: Path, kind: str, shape: tuple[int, ...]
) -> None:
    stored = store(tmp_path / "t.gguf", kind, shape)
    expected = gguf.quants.dequantize(stored.data, stored.tensor_type)
    mine = values(stored)
    assert mine.dtype == np.float32
    assert mine.shape == shape
    assert np.array_equal(mine, expected.reshape(shape))


def test_values_can_be_changed_without_changing_the_file(tmp_path: Path) -> None:
    stored = store(tmp_path / "t.gguf", "F32", (8, 4))
    values(stored)[:] = 0
    assert np.any(values(stored))


def store(path: Path, kind: str, shape: tuple[int, ...]) -> Any:
    """A tensor of `shape` as a file holds it; gguf writes K-quants only from bytes."""
    quantization = gguf.GGMLQuantizationType[kind]
    rng = np.random.default_rng(3)
    if kind == "Q6_K":
        rows = gguf.quants.quant_shape_to_byte_shape(shape, quantization)
        data = rng.integers(0, 60, rows, np.uint8)
    else:
        data = gguf.quants.quantize(rng.normal(size=shape).astype(np.float32), quantization)
    raw_type = None if kind in ("F32", "F16") else quantization
    write(path, lambda writer: writer.add_tensor("t", data, raw_dtype=raw_type))
    return HeaderReader(path).tensors[0]
