import numpy as np
import torch

from outrider.engine.kernels.formats.base import PANEL
from outrider.engine.kernels.formats.registry import FORMATS
from outrider.engine.kernels.panel import pack
from outrider.engine.kernels.vectors import LANES


def test_two_outputs_are_packed_as_the_halves_of_a_pair() -> None:
    weight = torch.zeros(PANEL, 1)
    weight[3], weight[3 + LANES] = -1.0, 2.0
    packed = pack(weight, FORMATS["bfloat16"])
    assert packed.dtype == np.uint32
    assert packed.shape == (1, 1, LANES)
    assert packed[0, 0, 3] == 0x4000BF80
    assert np.count_nonzero(packed) == 1


def test_a_float32_weight_is_rounded_to_the_nearest() -> None:
    packed = pack(torch.tensor([[1.0 + 2**-8 + 2**-20], [1.0 + 2**-9]]), FORMATS["bfloat16"])
    assert packed[0, 0, :2].tolist() == [0x3F81, 0x3F80]  # their partners are padding
