from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from outrider.engine.kernels.formats.base import PANEL
from outrider.engine.kernels.formats.registry import FORMATS
from outrider.engine.kernels.panel import MORE, ZERO, pack, strip_product
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
        panel_product(panel, inputs, out, p * PANEL)
    put_away(packed)
    return out


def random_operands(outputs: int, depth: int, rows: int) -> tuple[torch.Tensor, Array]:
    random = np.random.default_rng(outputs + depth + rows)
    weight = torch.from_numpy(random.standard_normal((outputs, depth), np.float32))
    return weight, random.standard_normal((rows, depth), np.float32)


def test_a_weight_is_packed_with_its_outputs_side_by_side() -> None:
    weight = torch.arange(float(3 * PANEL * 2)).view(3 * PANEL, 2)
    packed = pack(weight, FORMATS["float32"])
    assert packed.shape == (3, 2, PANEL)
    for output, k in ((0, 0), (1, 0), (PANEL, 1), (2 * PANEL + 5, 1)):
        assert packed[output // PANEL, k, output % PANEL] == weight[output, k]


def test_a_last_panel_is_filled_with_zeros() -> None:
    packed = pack(torch.ones(PANEL + 3, 5), FORMATS["float32"])
    assert packed.shape == (2, 5, PANEL)
    assert (packed[1, :, :3] == 1).all()
    assert (packed[1, :, 3:] == 0).all()


def test_a_large_weight_is_packed_part_by_part_to_the_same_panels() -> None:
    weight, _ = random_operands(150 * PANEL + 3, 3, 1)
    whole = pack(weight, FORMATS["int8"])
    assert whole.shape[0] == 151
    for panel in (0, 63, 64, 127, 128, 150):
        part = weight[panel * PANEL : (panel + 1) * PANEL]
        assert np.array_equal(whole[panel], pack(part, FORMATS["int8"])[0])


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
    panel_product(pack(weight, FORMATS["float32"])[0], x, out, PANEL)
    assert (out[:, :PANEL] == -1).all()
    assert (out[:, 2 * PANEL :] == -1).all()
    assert np.array_equal(out[:, PANEL : 2 * PANEL], product(weight, x))


def test_a_strip_of_a_matrix_goes_on_from_what_the_output_holds() -> None:
    random = np.random.default_rng(3)
    matrix, x = (random.integers(-9, 9, shape).astype(np.float32) for shape in ((30, 64), (5, 40)))
    out = np.full((5, 100), -1, np.float32)
    strip_product(matrix, 20, 12, x, ZERO, out, 10, ZERO, ZERO)
    strip_product(matrix[12:], 20, 18, x, 12, out, 10, MORE, ZERO)
    inside = np.s_[:, 10 : 10 + PANEL]
    assert np.array_equal(out[inside], x[:, :30] @ matrix[:, 20 : 20 + PANEL])
    out[inside] = -1
    assert (out == -1).all()


@pytest.mark.parametrize("name", sorted(FORMATS.keys() - {"int8", "int4"}))
def test_single_weights_can_be_read(name: str) -> None:
    weight, _ = random_operands(2 * PANEL + 3, 70, 1)
    packed = pack(weight, FORMATS[name])
    kept = weight if name == "float32" else weight.bfloat16().float()
    for output in (0, 1, 15, 16, 31, 32, 2 * PANEL + 2):
        for k in (0, 1, 2, 31, 32, 33, 69):
            assert stored_weight(packed, output, k) == kept[output, k]
