"""The formats of the cache, and attention in whichever it is."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from outrider.engine.compiling import compiled
from outrider.engine.kernels.attention.base import CacheFormat
from outrider.engine.kernels.attention.tiles import (
    BFloat16TileCache,
    attend_in_tiles,
    store_in_tiles,
)
from outrider.engine.kernels.attention.vectors import (
    Float32Cache,
    attend_in_vectors,
    store_in_vectors,
)
from outrider.engine.kernels.by_format import by_format
from outrider.engine.kernels.formats.tiles import tiles_available

CACHE_FORMATS: Mapping[str, CacheFormat] = MappingProxyType(
    {
        "float32": Float32Cache(),
        **({"bfloat16 in tiles": BFloat16TileCache()} if tiles_available() else {}),
    }
)
"""All that this CPU can compute with."""


@compiled(inline=True)
def store_heads(cache: Any, heads: Any, table: Any, position: int) -> None:
    """Caches the keys and values among `heads` [Q + 2 G, D] in the layer's block of `position`."""
    _store(cache, heads, table, position)


@compiled(inline=True)
def attend(
    cache: Any,
    first: int,
    end: int,
    g: int,
    size: int,
    heads: Any,
    positions: Any,
    table: Any,
    window: int,
    scale: Any,
    scratch: Any,
    out: Any,
) -> None:
    """Attention of rows `first` to `end`, of one sequence, in the query heads of cache head `g`.

    `heads` [R, at least Q D] holds the queries, D = `size`; `out` [R, Q D] gets the results,
    `cache` is that of the layer and `table` [blocks] the sequence's; `scratch` has room for
    `scratch_numbers`. Which rows attend together, and in which blocks their tokens lie, changes no
    bit of a result, whatever the tokens hold that a row does not see.
    """
    _attend(cache, first, end, g, size, heads, positions, table, window, scale, scratch, out)


_store = by_format(store_in_vectors, store_in_tiles)
_attend = by_format(attend_in_vectors, attend_in_tiles)
