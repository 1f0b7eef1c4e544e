from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from outrider.engine.kernels.formats.base import PANEL
from outrider.engine.kernels.formats.registry import FORMATS
from outrider.engine.kernels.panel import pack
from outrider.engine.kernels.products import (
    panel_product,
    prepared,
    put_away,
    room_for,
    stored_weight,
)

Array = np.ndarray[Any, np.dtype[Any]]


def product(weight: torch.Tensor, x: Array, name: str = "float32") -> Array:
    """`x @ weight.T` by panels."""
    packed = pack(weight, FORMATS[name])
    out = np.empty((len(x), len(packed) * PANEL), np.float32)
    inputs = prepared(packed, x, room_for(packed, *x.shape))
    for p, panel in enumerate(packed):
        panel_product(panel, panel, inputs, out, p * PANEL)
    put_away(packed)
    return out


def random_operands(outputs: int, depth: int, rows: int) -> tuple[torch.Tensor, Array]:
    random = np.random.default_rng(outputs + depth + rows)
    weight = torch.from_numpy(random.standard_normal((outputs, depth), np.float32))
    return weight, random.standard_normal((rows, depth), np.float32)


@settings(deadline=None, max_examples=60)
@given(
    rows=st.integers(0, 40),
    depth=st.integers(1, 130),
    outputs=st.integers(1, 3 * PANEL),
    name=st.sampled_from(["float32", "bfloat16"]),
    seed=st.integers(0, 9),
)
def test_the_product_of_whole_numbers_is_exact(
    rows: int, depth: int, outputs: int, name: str, seed: int
) -> None:
    random = np.random.default_rng(seed)
    weight = random.integers(-100, 101, (outputs, depth)).astype(np.float32)
    x = random.integers(-100, 101, (rows, depth)).astype(np.float32)
    seen = product(torch.from_numpy(weight), x, name)
    assert np.array_equal(seen[:, :outputs], x @ weight.T)
    assert (seen[:, outputs:] == 0).all()


@pytest.mark.parametrize("name", ["float32", "bfloat16"])
def test_the_product_is_that_of_float64_but_for_rounding(name: str) -> None:
    weight, x = random_operands(2 * PANEL, 576, 9)
    exact = x.astype(np.float64) @ weight.to(getattr(torch, name)).double().numpy().T
    np.testing.assert_allclose(product(weight, x, name), exact, atol=1e-4)


@pytest.mark.parametrize("name", FORMATS)
@pytest.mark.parametrize("depth", [576, 77])
def test_a_row_is_bit_for_bit_the_same_alone_and_among_any_others(name: str, depth: int) -> None:
    weight, x = random_operands(PANEL, depth, 60)
    together = product(weight, x, name)
    for start in range(60):
        for rows in (1, 2, 7, 12, 13, 24, 25):
            part = product(weight, x[start : start + rows], name)
            assert np.array_equal(part, together[start : start + rows])


def test_only_the_columns_of_the_panel_are_written() -> None:
    weight, x = random_operands(PANEL, 10, 5)
    out = np.full((5, 3 * PANEL), -1, np.float32)
    panel = pack(weight, FORMATS["float32"])[0]
    panel_product(panel, panel, x, out, PANEL)
    assert (out[:, :PANEL] == -1).all()
    assert (out[:, 2 * PANEL :] == -1).all()
    assert np.array_equal(out[:, PANEL : 2 * PANEL], product(weight, x))


@pytest.mark.parametrize("name", sorted(FORMATS.keys() - {"int8", "int4"}))
def test_single_weights_can_be_read(name: str) -> None:
    weight, _ = random_operands(2 * PANEL + 3, 70, 1)
    packed = pack(weight, FORMATS[name])
    kept = weight if name == "float32" else weight.bfloat16().float()
    for output in (0, 1, 15, 16, 31, 32, 2 * PANEL + 2):
        for k in (0, 1, 2, 31, 32, 33, 69):
            assert stored_weight(packed, output, k) == kept[output, k]
