import math
from typing import Any

import pytest

from outrider.engine.models.config import DecoderConfig, from_huggingface
from outrider.errors import UnsupportedModel

MINIMAL = {
    "model_type": "llama",
    "vocab_size": 100,
    "hidden_size": 64,
    "intermediate_size": 160,
    "num_hidden_layers": 3,
    "num_attention_heads": 8,
    "rms_norm_eps": 1e-5,
    "max_position_embeddings": 2048,
}


def read(**changes: Any) -> DecoderConfig:
    return from_huggingface(MINIMAL | changes)


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
        rope_theta=10_000.0,
        max_positions=2048,
        tied_embeddings=False,
        eos_token_ids=(),
    )


def test_what_a_config_states_is_taken() -> None:
    config = read(
        num_key_value_heads=2, head_dim=32, tie_word_embeddings=True, rope_theta=500_000, extra="?"
    )
    assert (config.num_kv_heads, config.head_dim, config.tied_embeddings) == (2, 32, True)
    assert config.rope_theta == 500_000.0


@pytest.mark.parametrize("empty", [None, 0])
def test_empty_settings_count_as_left_out(empty: int | None) -> None:
    config = read(num_key_value_heads=empty, head_dim=empty, rope_scaling=None)
    assert (config.num_kv_heads, config.head_dim) == (8, 8)


def test_the_newer_place_of_the_rope_settings_is_read_too() -> None:
    config = read(rope_parameters={"rope_type": "default", "rope_theta": 7.0}, rope_theta=9.0)
    assert config.rope_theta == 7.0


@pytest.mark.parametrize(("stated", "ids"), [(None, ()), (2, (2,)), (0, (0,)), ([5, 7], (5, 7))])
def test_there_may_be_none_one_or_several_ends_of_text(stated: Any, ids: tuple[int, ...]) -> None:
    assert read(eos_token_id=stated).eos_token_ids == ids


@pytest.mark.parametrize("family", ["qwen3", "", None])
def test_another_family_is_refused_with_those_that_run(family: str | None) -> None:
    with pytest.raises(UnsupportedModel, match=f"family is {family!r}; expected one of llama;"):
        read(model_type=family)


@pytest.mark.parametrize(
    ("changes", "seen"),
    [
        ({"rope_scaling": {"rope_type": "llama3", "factor": 8.0}}, "rope type is 'llama3'"),
        ({"rope_scaling": {"type": "linear", "factor": 2.0}}, "rope type is 'linear'"),
        ({"rope_parameters": {"rope_type": "yarn"}}, "rope type is 'yarn'"),
        ({"hidden_act": "gelu"}, "activation is 'gelu'"),
        ({"attention_bias": True}, "attention_bias is True"),
        ({"mlp_bias": True}, "mlp_bias is True"),
        ({"quantization_config": {"quant_method": "fp8"}}, "quantization is 'fp8'"),
    ],
)
def test_what_would_give_other_results_is_refused(changes: dict[str, Any], seen: str) -> None:
    with pytest.raises(UnsupportedModel, match=seen):
        read(**changes)


@pytest.mark.parametrize("missing", sorted(MINIMAL.keys() - {"model_type"}))
def test_a_missing_size_is_named(missing: str) -> None:
    config = {key: value for key, value in MINIMAL.items() if key != missing}
    with pytest.raises(UnsupportedModel, match=f"config.json has no '{missing}'"):
        from_huggingface(config)


@pytest.mark.parametrize(
    "changes", [{"vocab_size": "many"}, {"hidden_size": None}, {"num_attention_heads": 0}]
)
def test_a_value_that_is_no_number_is_refused(changes: dict[str, Any]) -> None:
    with pytest.raises(UnsupportedModel, match=r"config\.json has a value that is none"):
        read(**changes)


def test_parameters_count_every_weight_and_a_tied_embedding_once() -> None:
    # The real SmolLM2-135M, whose size transformers gives as 134,515,008.
    smollm2 = {
        "vocab_size": 49_152,
        "hidden_size": 576,
        "intermediate_size": 1_536,
        "num_hidden_layers": 30,
        "num_attention_heads": 9,
        "num_key_value_heads": 3,
    }
    assert read(**smollm2, tie_word_embeddings=True).parameters == 134_515_008
    assert read(**smollm2).parameters == 134_515_008 + 49_152 * 576


def test_parameters_are_the_sizes_of_all_shapes() -> None:
    config = read(num_key_value_heads=2, head_dim=32)
    layer = [
        *("input_layernorm", "post_attention_layernorm"),
        *(f"self_attn.{part}_proj" for part in "qkvo"),
        *(f"mlp.{part}_proj" for part in ("gate", "up", "down")),
    ]
    names = ["model.embed_tokens.weight", "model.norm.weight", "lm_head.weight"]
    names += [f"model.layers.{i}.{part}.weight" for i in range(3) for part in layer]
    assert sum(math.prod(config.shape_of(name)) for name in names) == config.parameters


def test_a_token_takes_keys_and_values_in_every_layer() -> None:
    config = read(num_key_value_heads=2, head_dim=32)
    assert config.kv_bytes_per_token() == 2 * 3 * 2 * 32 * 4
    assert config.kv_bytes_per_token(bytes_per_value=2) == 2 * 3 * 2 * 32 * 2


@pytest.mark.parametrize(
    "change",
    [{"rope_scaling": 5}, {"num_hidden_layers": 0}, {"num_key_value_heads": 3}, {"head_dim": -64}],
)
def test_a_config_that_describes_no_model_is_refused_in_one_line(change: dict[str, object]) -> None:
    with pytest.raises(UnsupportedModel) as refused:
        read(**change)
    assert "\n" not in str(refused.value)
