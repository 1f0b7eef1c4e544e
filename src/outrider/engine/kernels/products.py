"""Products with packed weights, in whatever format they are: what decides decoding speed.

inputs = prepared(panels, x, room)
for p in …: panel_product(panels[p], panels[p + 1], inputs, out, p * PANEL)
put_away(panels)
"""

from typing import Any

import numpy as np

from outrider.engine.compiling import compiled
from outrider.engine.kernels.block import as_float32
from outrider.engine.kernels.by_format import by_format
from outrider.engine.kernels.few_rows import FEW_ROWS, few_rows_product
from outrider.engine.kernels.formats.base import PANEL
from outrider.engine.kernels.formats.tiles import DEPTH, PARTS, place_in_line
from outrider.engine.kernels.memory import aligned_empty
from outrider.engine.kernels.strip_product import MORE, ZERO, strip_product
from outrider.engine.kernels.tile_product import in_parts, tile_product
from outrider.engine.kernels.tile_registers import release_tiles


@compiled(inline=True)
def room_for(panels: Any, rows: int, depth: int) -> Any:
    """Return the room that `prepared` needs for `rows` inputs of up to `depth` numbers."""
    return _room(panels, rows, depth)


@compiled(inline=True)
def prepared(panels: Any, x: Any, room: Any) -> Any:
    """Return `x` [R, K] float32 as `panel_product` takes it for these `panels`, perhaps in `room`.

    It holds until the room is used again. The thread that calls it also makes the products.
    """
    return _inputs(panels, x, room)


@compiled(inline=True)
def panel_product(panel: Any, following: Any, inputs: Any, out: Any, column: int) -> None:
    """`out[:, column : column + PANEL] = x @ panel`.

    `panel` is one of those that `pack` makes, `inputs` are x [R, K] as `prepared` for it, and `out`
    [R, C] is float32. `following` is the panel that is needed next, which need not exist: it is
    asked for in tiles, while vectors ask for what follows in memory.
    """
    _multiply(panel, following, inputs, out, column)


@compiled(inline=True)
def put_away(panels: Any) -> None:
    """End this thread's products with `panels` for now."""
    _end(panels)


@compiled(inline=True)
def stored_weight(panels: Any, output: int, k: int) -> Any:
    """Return one weight as float32; of float32 and bfloat16 panels."""
    return _weight(panels, output, k)


def _multiply_vectors(panel: Any, _following: Any, x: Any, out: Any, column: Any) -> None:
    strip_product(panel, ZERO, x.shape[1], x, ZERO, out, np.int64(column), ZERO, MORE)


def _multiply_tiles(panel: Any, following: Any, parts: Any, out: Any, column: Any) -> None:
    if parts.shape[1] <= FEW_ROWS:
        few_rows_product(panel, following, parts, out, np.int64(column))
    else:
        tile_product(panel, following, parts, out, np.int64(column))


def _weight_in_vector(panels: Any, output: Any, k: Any) -> Any:
    half, lane = output % PANEL // panels.shape[2], output % PANEL % panels.shape[2]
    return as_float32(panels[output // PANEL, k, lane], half)


def _weight_in_tile(panels: Any, output: Any, k: Any) -> Any:
    bits = panels[output // PANEL, k // DEPTH, place_in_line(output % PANEL, k % DEPTH)]
    return as_float32(np.uint32(bits), 0)


_room = by_format(
    lambda _panels, _rows, _depth: np.empty(0, np.uint16),
    lambda _panels, rows, depth: aligned_empty(PARTS * rows * (depth + -depth % DEPTH), np.uint16),
)
_inputs = by_format(lambda _panels, x, _room: x, lambda _panels, x, room: in_parts(x, room))
_multiply = by_format(_multiply_vectors, _multiply_tiles)
_end = by_format(lambda _panels: None, lambda _panels: release_tiles())
_weight = by_format(_weight_in_vector, _weight_in_tile)
