import numpy as np
import pytest
import torch
from tests.engine.kernels.arrays import random

from outrider.engine.kernels.decoder import add_product, embed
from outrider.engine.kernels.formats.base import PANEL
from outrider.engine.kernels.formats.registry import FORMATS
from outrider.engine.kernels.panel import pack


@pytest.mark.parametrize("name", ["float32", "bfloat16"])
@pytest.mark.parametrize("token", [0, PANEL - 1, PANEL, 3 * PANEL + 3])
def test_an_embedding_is_read_out_of_the_packed_table_and_scaled(token: int, name: str) -> None:
    table = torch.from_numpy(random(3 * PANEL + 4, 10))
    out = np.empty(10, np.float32)
    embed(token, pack(table, FORMATS[name]), np.float32(2.5), out)
    assert np.array_equal(out, (table[token].to(getattr(torch, name)).float() * 2.5).numpy())


def test_a_product_is_added_to_the_columns_that_exist() -> None:
    weight, inputs, x = random(PANEL + 6, 20, seed=1), random(3, 20, seed=2), random(3, PANEL + 6)
    expected = x + inputs @ weight.T
    scratch = np.empty((3, 3 * PANEL), np.float32)
    for p, panel in enumerate(pack(torch.from_numpy(weight), FORMATS["float32"])):
        add_product(panel, panel, inputs, scratch, x, p * PANEL)
    np.testing.assert_allclose(x, expected, rtol=1e-5, atol=1e-5)
