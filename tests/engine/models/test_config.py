import math
from dataclasses import replace
from typing import Any

import pytest
from tests.engine.models.configs import config_of

# The real SmolLM2-135M, whose size transformers gives as 134,515,008.
SMOLLM2 = config_of(
    vocab_size=49_152,
    hidden_size=576,
    intermediate_size=1_536,
    num_layers=30,
    num_heads=9,
    num_kv_heads=3,
    head_dim=64,
    tied_embeddings=True,
)
PLAIN = replace(SMOLLM2, tied_embeddings=False)
LAYER = {
    "input_layernorm.weight": (576,),
    "self_attn.q_proj.weight": (576, 576),
    "self_attn.k_proj.weight": (192, 576),
    "self_attn.v_proj.weight": (192, 576),
    "self_attn.o_proj.weight": (576, 576),
    "mlp_norm.weight": (576,),
    "mlp.gate_proj.weight": (1_536, 576),
    "mlp.up_proj.weight": (1_536, 576),
    "mlp.down_proj.weight": (576, 1_536),
}
FURTHER: list[tuple[dict[str, Any], dict[str, tuple[int, ...]]]] = [
    ({}, {}),
    (
        {"qkv_bias": True},
        {
            "self_attn.q_proj.bias": (576,),
            "self_attn.k_proj.bias": (192,),
            "self_attn.v_proj.bias": (192,),
        },
    ),
    ({"qk_norm": True}, {"self_attn.q_norm.weight": (64,), "self_attn.k_norm.weight": (64,)}),
    (
        {"post_norms": True},
        {"attention_output_norm.weight": (576,), "mlp_output_norm.weight": (576,)},
    ),
]


@pytest.mark.parametrize(("differences", "further"), FURTHER)
def test_a_layer_has_the_weights_that_its_differences_ask_for(
    differences: dict[str, Any], further: dict[str, tuple[int, ...]]
) -> None:
    config = replace(SMOLLM2, **differences)
    assert len(config.layer_parts) == len(set(config.layer_parts))
    shapes = {part: config.shape_of(f"model.layers.7.{part}") for part in config.layer_parts}
    assert shapes == LAYER | further
    assert config.parameters == 134_515_008 + 30 * sum(map(math.prod, further.values()))


def test_a_tied_embedding_counts_once() -> None:
    assert SMOLLM2.parameters == 134_515_008
    assert PLAIN.parameters == 134_515_008 + 49_152 * 576
    assert set(PLAIN.weight_names) - set(SMOLLM2.weight_names) == {"lm_head.weight"}


def test_weights_outside_the_layers_have_their_shapes() -> None:
    outside = [name for name in PLAIN.weight_names if ".layers." not in name]
    assert {name: PLAIN.shape_of(name) for name in outside} == {
        "model.embed_tokens.weight": (49_152, 576),
        "model.norm.weight": (576,),
        "lm_head.weight": (49_152, 576),
    }
    assert len(PLAIN.weight_names) == 3 + 30 * len(LAYER)
