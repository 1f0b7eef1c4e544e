"""One name in compiled code for what is done in vectors or in tiles."""

from typing import Any

from numba import types
from numba.extending import overload

from outrider.engine.kernels.formats.tiles import BFloat16Tiles


def by_format(in_vectors: Any, in_tiles: Any) -> Any:
    """A function for compiled code that is one or the other, by what its first argument holds.

    That is an array, or a named tuple of arrays in one format.
    """

    def function(*_args: Any) -> Any:
        raise NotImplementedError("for compiled code")

    def chosen(first: Any, *_args: Any) -> Any:
        array = first if isinstance(first, types.Array) else first[0]
        return in_tiles if array.dtype == BFloat16Tiles.stored else in_vectors

    overload(function, strict=False)(chosen)
    return function
