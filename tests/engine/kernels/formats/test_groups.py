"""What int8 and int4 have in common."""

import numpy as np
import pytest
import torch
from gguf import GGMLQuantizationType, dequantize, quantize
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.engine.kernels.arrays import random
from tests.engine.kernels.formats.grouped import kept

from outrider.engine.kernels.formats.base import PANEL
from outrider.engine.kernels.formats.registry import FORMATS
from outrider.engine.kernels.panel import pack
from outrider.engine.kernels.products import panel_product

BOTH = pytest.mark.parametrize(("name", "levels"), [("int8", 254), ("int4", 15)])


@BOTH
def test_no_weight_moves_more_than_half_a_step_of_its_group(name: str, levels: int) -> None:
    weight = torch.from_numpy(random(40, 96, scale=0.05))
    parts = zip(weight.chunk(3, dim=1), kept(weight, name).chunk(3, dim=1), strict=True)
    for before, after in parts:
        span = 2 * before.abs().amax(1) if name == "int8" else before.amax(1) - before.amin(1)
        # Besides half a step: the rounding of the scale, and of the lowest value, to 11 bits.
        allowed = span / levels / 2 + before.abs().amax(1) * 2**-10
        assert ((before - after).abs() <= allowed.unsqueeze(1)).all()


@pytest.mark.parametrize(
    ("name", "ggml"),
    [("int8", GGMLQuantizationType.Q8_0), ("int4", GGMLQuantizationType.Q4_1)],
)
def test_what_a_gguf_file_holds_is_kept_exactly(name: str, ggml: GGMLQuantizationType) -> None:
    stored = torch.from_numpy(dequantize(quantize(random(36, 128, scale=0.1), ggml), ggml))
    assert kept(stored, name).float().tolist() == stored.tolist()


@BOTH
def test_a_group_of_equal_weights_is_kept(name: str, levels: int) -> None:
    del levels
    weight = torch.tensor([0.0, 0.5, -0.25]).unsqueeze(1).expand(3, 70).contiguous()
    assert torch.allclose(kept(weight, name).float(), weight, rtol=2**-11)


@BOTH
def test_what_fills_up_a_last_group_changes_nothing(name: str, levels: int) -> None:
    del levels
    weight = torch.from_numpy(random(PANEL, 70))
    filled = torch.nn.functional.pad(weight, (0, 26))
    assert np.array_equal(pack(weight, FORMATS[name]), pack(filled, FORMATS[name]))


@settings(deadline=None, max_examples=40)
@given(
    name=st.sampled_from(["int8", "int4"]),
    rows=st.integers(0, 30),
    depth=st.integers(1, 130),
    outputs=st.integers(1, 2 * PANEL),
)
def test_a_product_is_that_with_the_weights_that_are_kept(
    name: str, rows: int, depth: int, outputs: int
) -> None:
    weight = torch.from_numpy(random(outputs, depth, seed=depth))
    x = random(rows, depth, seed=rows)
    packed = pack(weight, FORMATS[name])
    out = np.empty((rows, len(packed) * PANEL), np.float32)
    for p, panel in enumerate(packed):
        panel_product(panel, panel, x, out, p * PANEL)
    exact = x.astype(np.float64) @ kept(weight, name).numpy().T
    np.testing.assert_allclose(out[:, :outputs], exact, atol=1e-4, rtol=1e-5)
    assert (out[:, outputs:] == 0).all()


@pytest.mark.parametrize(("name", "bits"), [("int8", 8.5), ("int4", 5), ("bfloat16", 16)])
def test_a_format_tells_how_many_bits_a_weight_takes(name: str, bits: float) -> None:
    assert FORMATS[name].bits_per_weight == bits
    assert pack(torch.ones(PANEL, 64), FORMATS[name]).nbytes == PANEL * 64 * bits / 8


def test_compiled_code_can_tell_the_formats_apart() -> None:
    stored = {each.stored for each in FORMATS.values()}
    assert len(stored) == len(FORMATS)
    for each in FORMATS.values():
        assert pack(torch.ones(1, 1), each).dtype == np.dtype(each.stored.name)
