from typing import Any

import pytest
from tests.engine.models.families.minimal import MINIMAL, read

from outrider.engine.models.families.registry import family_of
from outrider.engine.models.families.settings import Settings
from outrider.engine.models.rope import Rope
from outrider.errors import UnsupportedModel

LINEAR = {"rope_type": "linear", "factor": 8.0}


def gemma(**changes: Any) -> Any:
    return read("gemma3_text", **changes)


def test_its_differences_are_declared() -> None:
    config = gemma(query_pre_attn_scalar=16)
    assert (config.activation, config.embedding_scale) == ("gelu_tanh", 8.0)
    assert (config.qk_norm, config.post_norms, config.tied_embeddings) == (True, True, True)
    assert config.attention_scale == 0.25


def test_what_googles_configs_leave_out_is_as_in_transformers() -> None:
    from transformers import Gemma3TextConfig  # noqa: PLC0415  takes seconds

    stated = {"hidden_size": 2560, "intermediate_size": 10240, "num_hidden_layers": 34}
    config = family_of("gemma3_text").read(Settings(stated))
    theirs = Gemma3TextConfig(**stated)
    assert config.vocab_size == theirs.vocab_size
    assert (config.num_heads, config.num_kv_heads) == (8, 4)
    assert (config.head_dim, config.max_positions) == (256, theirs.max_position_embeddings)
    assert (config.rms_norm_eps, config.eos_token_ids) == (theirs.rms_norm_eps, (1,))
    assert config.attention_scale == theirs.query_pre_attn_scalar**-0.5
    assert config.windows == tuple(
        theirs.sliding_window if each == "sliding_attention" else 0 for each in theirs.layer_types
    )
    assert tuple(rope.theta for rope in config.ropes) == (1_000_000.0, 10_000.0)


def test_each_kind_of_layer_has_its_own_rope() -> None:
    types = ["full_attention", "sliding_attention", "full_attention"]
    config = gemma(layer_types=types, sliding_window=16)
    assert (config.windows, config.rope_of_layer) == ((0, 16, 0), (0, 1, 0))


def test_every_so_many_layers_one_sees_all_tokens() -> None:
    assert gemma(sliding_window_pattern=2, sliding_window=16).windows == (16, 0, 16)
    assert gemma(sliding_window=16).windows == (16, 16, 16)


def test_ropes_are_read_as_old_and_as_new_releases_write_them() -> None:
    old = gemma(rope_theta=900.0, rope_local_base_freq=70.0, rope_scaling=LINEAR)
    nested = {
        "full_attention": {"rope_theta": 900.0, **LINEAR},
        "sliding_attention": {"rope_theta": 70.0, "rope_type": "default"},
    }
    assert old.ropes == gemma(rope_parameters=nested).ropes
    assert old.ropes == (Rope(900.0, "linear", factor=8.0), Rope(70.0))


def test_the_text_part_of_a_model_that_sees_images_is_read() -> None:
    text = {"model_type": "gemma3_text", **MINIMAL, "rope_scaling": LINEAR}
    outer = {"vision_config": {"hidden_size": 9}, "eos_token_id": [1, 106], "text_config": text}
    config = family_of("gemma3").read(Settings(outer))
    assert config == gemma(rope_scaling=LINEAR, eos_token_id=[1, 106])


def test_a_model_may_have_no_end_of_text() -> None:
    assert (gemma().eos_token_ids, gemma(eos_token_id=None).eos_token_ids) == ((1,), ())


@pytest.mark.parametrize(
    ("changes", "seen"),
    [
        ({"final_logit_softcapping": 30.0}, "final_logit_softcapping is 30.0"),
        ({"attention_bias": True}, "attention_bias is True"),
        ({"hidden_activation": "gelu"}, "hidden_activation is 'gelu'"),
        ({"rope_parameters": LINEAR}, "expected settings for full_attention and"),
        ({"rope_scaling": {"rope_type": "dynamic"}}, "rope_type is 'dynamic'"),
        ({"text_config": {"quantization_config": {"bits": 4}}}, "weights are quantized"),
        ({"text_config": 3}, "text_config is 3"),
    ],
)
def test_what_would_give_other_results_is_refused(changes: dict[str, Any], seen: str) -> None:
    with pytest.raises(UnsupportedModel, match=seen):
        gemma(**changes)
