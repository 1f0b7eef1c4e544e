"""A GGUF file's metadata and tensors, read by the gguf package in fewer and larger steps."""

import struct
from typing import Any

import gguf
import numpy as np

_ROWS_AT_ONCE = 8


class HeaderReader(gguf.GGUFReader):  # type: ignore[misc]  # gguf has no types
    """gguf's reader, but for arrays in the metadata, each of which is one part.

    gguf makes objects of every element, which takes seconds for a vocabulary. Here arrays of
    numbers read as there; arrays of strings, which only tokenizers need, are left as raw bytes.
    """

    def _get_field_parts(self, orig_offs: int, raw_type: int) -> Any:
        if raw_type != gguf.GGUFValueType.ARRAY or self.byte_order != "I":
            return super()._get_field_parts(orig_offs, raw_type)
        kind, count = struct.unpack_from("=IQ", self.data, orig_offs)
        start = orig_offs + 12
        item = self.gguf_scalar_to_np.get(kind)
        if item is not None:
            elements = self._get(start, item, count)
            types = [gguf.GGUFValueType.ARRAY, gguf.GGUFValueType(kind)]
            return 12 + elements.nbytes, [elements], [0], types
        if kind != gguf.GGUFValueType.STRING:
            return super()._get_field_parts(orig_offs, raw_type)
        end = _end_of_strings(self.data, start, count)
        raw = self.data[start:end]
        return end - orig_offs, [raw], [0], [gguf.GGUFValueType.ARRAY, gguf.GGUFValueType.UINT8]


def _end_of_strings(data: Any, start: int, count: int) -> int:
    """Where `count` strings end, each of them stored after its length."""
    view, length_at = memoryview(data), struct.Struct("=Q").unpack_from
    end = start
    for _ in range(count):
        end += 8 + length_at(view, end)[0]
    return end


def values(stored: gguf.ReaderTensor) -> np.ndarray[Any, np.dtype[np.float32]]:
    """The dequantized values of a stored tensor, in an array of its own.

    Raises NotImplementedError for a type that the gguf package does not dequantize.
    """
    # A plain view of the file: each slice of a memmap would run Python code.
    data = stored.data.view(np.ndarray)
    rows = data.shape[0]
    if data.ndim > 1 and rows % _ROWS_AT_ONCE == 0:
        # gguf takes 16 rows in each step; longer rows are fewer steps, of the same values.
        data = data.reshape(rows // _ROWS_AT_ONCE, -1)
    dequantized = gguf.quants.dequantize(data, stored.tensor_type).reshape(stored.shape[::-1])
    return np.require(dequantized, np.float32, ["C", "W", "O"])
