"""The values of K-quantized blocks, one at a time, as ggml documents their layout.

A block holds 256 values. In Q4_K and Q5_K it has 8 parts of 32 values, each with a scale and a
minimum of 6 bits; in Q6_K 16 parts of 16 values with a scale of 8 bits.
"""

import struct
from collections.abc import Callable

VALUES = 256
BLOCK_BYTES = {"Q4_K": 144, "Q5_K": 176, "Q6_K": 210}


def _half(two_bytes: bytes) -> float:
    return float(struct.unpack("<e", two_bytes)[0])


def _scale_and_minimum(packed: bytes, part: int) -> tuple[int, int]:
    """Two numbers of 6 bits: for parts 0 to 3 in the low bits of 8 bytes, else put together."""
    if part < 4:
        return packed[part] & 63, packed[part + 4] & 63
    low = packed[part + 4]
    return (low & 15) | (packed[part - 4] >> 6) << 4, (low >> 4) | (packed[part] >> 6) << 4


def q4_k(block: bytes, i: int) -> float:
    """Scale, minimum (fp16 each), 12 bytes of scales, 128 bytes with two values each."""
    scale, minimum = _scale_and_minimum(block[4:16], i // 32)
    byte = block[16 + i // 64 * 32 + i % 32]
    level = byte & 15 if i % 64 < 32 else byte >> 4
    return _half(block[:2]) * scale * level - _half(block[2:4]) * minimum


def q5_k(block: bytes, i: int) -> float:
    """As Q4_K, with the fifth bit of every value in 32 bytes between scales and values."""
    scale, minimum = _scale_and_minimum(block[4:16], i // 32)
    byte = block[48 + i // 64 * 32 + i % 32]
    level = byte & 15 if i % 64 < 32 else byte >> 4
    level += 16 * (block[16 + i % 32] >> (i // 32) & 1)
    return _half(block[:2]) * scale * level - _half(block[2:4]) * minimum


def q6_k(block: bytes, i: int) -> float:
    """128 bytes of low 4 bits, 64 of high 2 bits, 16 signed scales, a scale for all (fp16)."""
    half, inside = divmod(i, 128)
    quarter, place = divmod(inside, 32)
    byte = block[64 * half + 32 * (quarter % 2) + place]
    level = byte & 15 if quarter < 2 else byte >> 4
    level += 16 * (block[128 + 32 * half + place] >> 2 * quarter & 3)
    scale = struct.unpack("b", block[192 + i // 16 : 193 + i // 16])[0]
    return float(_half(block[208:210]) * scale * (level - 32))


VALUE: dict[str, Callable[[bytes, int], float]] = {"Q4_K": q4_k, "Q5_K": q5_k, "Q6_K": q6_k}
