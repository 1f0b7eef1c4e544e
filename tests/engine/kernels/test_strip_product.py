from typing import Any

import numpy as np

from outrider.engine.kernels.formats.base import PANEL
from outrider.engine.kernels.strip_product import MORE, ZERO, strip_product

Array = np.ndarray[Any, np.dtype[Any]]


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
