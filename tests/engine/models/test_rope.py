import math
from typing import Any

import pytest
import torch

from outrider.engine.models.families.rope_settings import shared_rope
from outrider.engine.models.families.settings import Settings
from outrider.engine.models.rope import Rope, frequencies, rope_tables, yarn_attention_factor

LLAMA3 = {
    "factor": 8.0,
    "low_freq_factor": 1.0,
    "high_freq_factor": 4.0,
    "original_max_position_embeddings": 8192,
}
YARN = {"factor": 4.0, "original_max_position_embeddings": 4096}
SCALED: list[dict[str, Any]] = [
    {"rope_type": "linear", "factor": 8.0},
    {"rope_type": "linear", "factor": 2.5, "rope_theta": 1_000_000.0},
    {"rope_type": "llama3", "rope_theta": 500_000.0, **LLAMA3},
    {"rope_type": "llama3", "rope_theta": 10_000.0, **LLAMA3, "factor": 32.0},
    {"rope_type": "llama3", **LLAMA3, "low_freq_factor": 2.0, "high_freq_factor": 5.0},
    {"rope_type": "yarn", **YARN},
    {"rope_type": "yarn", "rope_theta": 1_000_000.0, **YARN, "factor": 40.0},
    {"rope_type": "yarn", **YARN, "attention_factor": 0.7},
    {"rope_type": "yarn", **YARN, "mscale": 0.707, "mscale_all_dim": 1.3},
    {"rope_type": "yarn", **YARN, "beta_fast": 20.0, "beta_slow": 3.0},
    {"rope_type": "yarn", **YARN, "truncate": False},
    {"rope_type": "yarn", **YARN, "factor": 0.5},
    {"rope_type": "yarn", **YARN, "original_max_position_embeddings": 32},
]


def test_pair_i_turns_by_the_position_over_theta_to_the_power_of_2i_over_the_head_size() -> None:
    cos, sin = rope_tables(Rope(100.0), 4, 3)
    assert cos.shape == sin.shape == (3, 2)
    for position in range(3):
        for i, frequency in enumerate((1.0, 0.1)):
            assert math.isclose(cos[position, i], math.cos(position * frequency), abs_tol=1e-6)
            assert math.isclose(sin[position, i], math.sin(position * frequency), abs_tol=1e-6)


@pytest.mark.parametrize("head_dim", [64, 80, 128])
@pytest.mark.parametrize("section", SCALED, ids=repr)
def test_scaled_positions_are_those_of_transformers(section: dict[str, Any], head_dim: int) -> None:
    from transformers import LlamaConfig  # noqa: PLC0415  takes seconds
    from transformers.modeling_rope_utils import ROPE_INIT_FUNCTIONS  # noqa: PLC0415

    stated = {"rope_parameters": section, "head_dim": head_dim, "max_position_embeddings": 16_384}
    config = LlamaConfig(**stated)
    expected, factor = ROPE_INIT_FUNCTIONS[section["rope_type"]](config, torch.device("cpu"))
    rope = shared_rope(Settings(stated))
    torch.testing.assert_close(frequencies(rope, head_dim), expected, rtol=3e-7, atol=0)
    assert rope.attention_factor == pytest.approx(factor, rel=1e-12)


def test_the_attention_factor_is_in_both_tables() -> None:
    cos, sin = rope_tables(Rope(100.0, attention_factor=3.0), 4, 5)
    assert torch.allclose(cos**2 + sin**2, torch.tensor(9.0))


def test_each_pair_may_have_a_divisor_of_its_own() -> None:
    seen = frequencies(Rope(100.0, "divisors", divisors=(1.0, 4.0)), 4)
    assert seen.tolist() == pytest.approx([1.0, 0.025])


def test_yarn_strengthens_attention_only_where_positions_are_more_than_in_training() -> None:
    assert yarn_attention_factor(math.e) == pytest.approx(1.1)
    assert yarn_attention_factor(math.e, weight=2.0) == pytest.approx(1.2)
    assert yarn_attention_factor(1.0) == yarn_attention_factor(0.5) == 1.0
