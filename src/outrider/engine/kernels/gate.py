"""The gated first half of an MLP."""

from typing import Any

from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from outrider.engine.compiling import compiled
from outrider.engine.kernels.exponential import exponential
from outrider.engine.kernels.formats.base import PANEL
from outrider.engine.kernels.products import panel_product
from outrider.engine.kernels.vectors import INDEX, LANES, VECTOR, constant, index, load

_TWICE_ROOT = 2.0 * (2.0 / 3.141592653589793) ** 0.5
_CUBIC = 0.044715


@compiled()
def gated_product(
    gate: Any,
    up: Any,
    following: Any,
    inputs: Any,
    gelu: bool,  # noqa: FBT001
    scratch: Any,
    out: Any,
    column: int,
) -> None:
    """`activation(x @ gate) * (x @ up)` into a panel of `out` [R, I], from `column` on.

    `inputs` are x [R, K] as `prepared`; `following` is the panel that is needed next. Both
    activations are x / (1 + exp(-z)): SiLU with z = x; GELU, in the tanh form, with
    z = sqrt(8 / pi) (x + 0.044715 x^3), since 1 + tanh(z / 2) = 2 / (1 + exp(-z)). `scratch` is
    [R, at least 2 PANEL].
    """
    rows, width = out.shape
    panel_product(gate, up, inputs, scratch, 0)
    panel_product(up, following, inputs, scratch, PANEL)
    if column + PANEL <= width:
        _activate(scratch, rows, gelu, out, column)
        return
    _activate(scratch, rows, gelu, scratch, 0)
    for r in range(rows):
        for i in range(width - column):
            out[r, column + i] = scratch[r, i]


@intrinsic
def _activate(_typing: Any, scratch: Any, rows: Any, gelu: Any, out: Any, column: Any) -> Any:
    """A panel of `out`, from `column` on, from gate and up in the first panels of `scratch`."""
    signature = types.void(scratch, types.intp, types.boolean, out, types.intp)

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        source, target = (
            context.make_array(signature.args[i])(context, builder, args[i]) for i in (0, 3)
        )

        def place(array: Any, row: Any, at: Any) -> Any:
            line = builder.mul(row, builder.extract_value(array.shape, 1))
            return builder.gep(array.data, [builder.add(line, at)])

        with cgutils.for_range(builder, args[1], intp=INDEX) as loop:
            for half in (0, LANES):
                x = load(builder, place(source, loop.index, index(half)))
                up = load(builder, place(source, loop.index, index(PANEL + half)))
                cube = builder.fmul(builder.fmul(x, x), builder.fmul(x, constant(_CUBIC)))
                curved = builder.fmul(builder.fadd(x, cube), constant(_TWICE_ROOT))
                z = builder.select(args[2], curved, x)
                power = exponential(builder, builder.fsub(constant(0.0), z))
                activated = builder.fdiv(x, builder.fadd(power, constant(1.0)))
                at = place(target, loop.index, builder.add(args[4], index(half)))
                pointer = builder.bitcast(at, VECTOR.as_pointer())
                builder.store(builder.fmul(activated, up), pointer, align=4)
        return context.get_dummy_value()

    return signature, codegen
