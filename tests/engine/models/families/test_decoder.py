from typing import Any

import pytest
from tests.engine.models.families.minimal import MINIMAL, read

from outrider.engine.models.config import DecoderConfig
from outrider.engine.models.rope import Rope
from outrider.errors import UnsupportedModel


def test_what_a_config_leaves_out_has_the_values_of_the_first_llama() -> None:
    assert read() == DecoderConfig(
        family="llama",
        vocab_size=100,
        hidden_size=64,
        intermediate_size=160,
        num_layers=3,
        num_heads=8,
        num_kv_heads=8,
        head_dim=8,
        rms_norm_eps=1e-5,
        max_positions=2048,
        tied_embeddings=False,
        attention_scale=8**-0.5,
        windows=(0, 0, 0),
        ropes=(Rope(10_000.0),),
        rope_of_layer=(0, 0, 0),
        eos_token_ids=(),
    )


def test_what_a_config_states_is_taken() -> None:
    config = read(
        num_key_value_heads=2,
        head_dim=32,
        tie_word_embeddings=True,
        rope_theta=500_000,
        eos_token_id=[5, 7],
        hidden_act="gelu_pytorch_tanh",
        extra="?",
    )
    assert (config.num_kv_heads, config.head_dim, config.tied_embeddings) == (2, 32, True)
    assert (config.ropes, config.eos_token_ids) == ((Rope(500_000.0),), (5, 7))
    assert (config.activation, config.attention_scale) == ("gelu_tanh", 32**-0.5)


@pytest.mark.parametrize(
    ("changes", "seen"),
    [
        ({"hidden_act": "gelu"}, "hidden_act is 'gelu'"),
        ({"hidden_activation": "relu"}, "hidden_activation is 'relu'"),
        ({"attention_bias": True}, "attention_bias is True"),
        ({"mlp_bias": True}, "mlp_bias is True"),
        ({"final_logit_softcapping": 30.0}, "final_logit_softcapping is 30.0"),
        ({"attn_logit_softcapping": 50.0}, "attn_logit_softcapping is 50.0"),
        ({"use_bidirectional_attention": True}, "use_bidirectional_attention is True"),
        ({"num_local_experts": 8}, "num_local_experts is 8"),
        ({"quantization_config": {"quant_method": "fp8"}}, "weights are quantized by fp8"),
        ({"quantization_config": {"bits": 4}}, "weights are quantized by unknown means"),
    ],
)
def test_what_would_give_other_results_is_refused(changes: dict[str, Any], seen: str) -> None:
    with pytest.raises(UnsupportedModel, match=seen):
        read(**changes)


@pytest.mark.parametrize("name", ["attention_bias", "num_experts", "quantization_config"])
def test_a_setting_that_is_off_is_not(name: str) -> None:
    off = {"attention_bias": False, "num_experts": 0, "quantization_config": None}
    assert read(**{name: off[name]}) == read()


@pytest.mark.parametrize("missing", sorted(MINIMAL))
def test_a_missing_size_is_named(missing: str) -> None:
    with pytest.raises(UnsupportedModel, match=f"the model's {missing} is missing"):
        read(**{missing: None})


@pytest.mark.parametrize("change", [{"num_key_value_heads": 3}, {"head_dim": 7}])
def test_heads_that_make_no_model_are_refused(change: dict[str, int]) -> None:
    with pytest.raises(UnsupportedModel, match="the model has 8 query and"):
        read(**change)
