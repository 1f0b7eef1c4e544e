"""The formats of weights that the kernels read."""

from collections.abc import Mapping
from types import MappingProxyType

from numba import types

from outrider.engine.kernels.formats.base import WeightFormat
from outrider.engine.kernels.formats.bfloat16 import BFloat16
from outrider.engine.kernels.formats.float32 import Float32
from outrider.engine.kernels.formats.int4 import Int4
from outrider.engine.kernels.formats.int8 import Int8

FORMATS: Mapping[str, WeightFormat] = MappingProxyType(
    {"float32": Float32(), "bfloat16": BFloat16(), "int8": Int8(), "int4": Int4()}
)

FORMAT_OF: Mapping[types.Number, WeightFormat] = MappingProxyType(
    {each.stored: each for each in FORMATS.values()}
)
"""The format of an array, by the type of its elements."""
