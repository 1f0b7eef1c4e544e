from typing import Any

import pytest
from tests.engine.models.families.minimal import read

from outrider.errors import UnsupportedModel

WINDOWS = {"use_sliding_window": True, "sliding_window": 32, "max_window_layers": 2}
BOTH = pytest.mark.parametrize("family", ["qwen2", "qwen3"])


def test_qwen_2_has_biases_and_qwen_3_norms_in_their_place() -> None:
    assert (read("qwen2").qkv_bias, read("qwen2").qk_norm) == (True, False)
    assert (read("qwen3").qkv_bias, read("qwen3").qk_norm) == (False, True)


def test_the_biases_of_qwen_2_need_no_setting_while_qwen_3_may_not_have_any() -> None:
    assert read("qwen2", attention_bias=True) == read("qwen2", attention_bias=False)
    with pytest.raises(UnsupportedModel, match="attention_bias is True"):
        read("qwen3", attention_bias=True)


def test_the_heads_of_qwen_3_have_128_values_unless_it_says_otherwise() -> None:
    assert (read("qwen3").head_dim, read("qwen3", head_dim=64).head_dim) == (128, 64)
    assert read("qwen2").head_dim == 8


@BOTH
def test_windows_are_off_unless_switched_on(family: str) -> None:
    assert read(family, sliding_window=32, max_window_layers=0).windows == (0, 0, 0)


@BOTH
def test_layers_from_max_window_layers_on_slide(family: str) -> None:
    assert read(family, **WINDOWS).windows == (0, 0, 32)
    assert read(family, **WINDOWS | {"max_window_layers": 0}).windows == (32, 32, 32)


@BOTH
def test_layer_types_say_which_layers_slide(family: str) -> None:
    types = ["sliding_attention", "full_attention", "full_attention"]
    assert read(family, **WINDOWS, layer_types=types).windows == (32, 0, 0)


@pytest.mark.parametrize(
    "change",
    [
        {"layer_types": ["full_attention"] * 2},
        {"layer_types": ["linear_attention"] * 3},
        {"layer_types": "full_attention"},
        {"max_window_layers": "all"},
        {"sliding_window": None},
    ],
)
def test_layers_of_another_kind_are_refused(change: dict[str, Any]) -> None:
    with pytest.raises(UnsupportedModel, match=f"the model's {next(iter(change))} is"):
        read("qwen2", **WINDOWS | change)
