"""The formats of weights that the kernels read."""

from collections.abc import Mapping
from types import MappingProxyType

from numba import types

from outrider.engine.kernels.formats.base import VectorFormat, WeightFormat
from outrider.engine.kernels.formats.bfloat16 import BFloat16
from outrider.engine.kernels.formats.float32 import Float32
from outrider.engine.kernels.formats.int4 import Int4
from outrider.engine.kernels.formats.int8 import Int8
from outrider.engine.kernels.formats.tiles import BFloat16Tiles, tiles_available

VECTOR_FORMATS: Mapping[str, VectorFormat] = MappingProxyType(
    {"float32": Float32(), "bfloat16": BFloat16(), "int8": Int8(), "int4": Int4()}
)
"""Those for any CPU."""

FORMATS: Mapping[str, WeightFormat] = MappingProxyType(
    {**VECTOR_FORMATS, **({"bfloat16 in tiles": BFloat16Tiles()} if tiles_available() else {})}
)
"""All that this CPU can compute with."""

FORMAT_OF: Mapping[types.Number, VectorFormat] = MappingProxyType(
    {each.stored: each for each in VECTOR_FORMATS.values()}
)
"""The format of an array that `multiply_block` is given, by the type of its elements."""
