from typing import Any

import pytest

from outrider.engine.models.config import DecoderConfig
from outrider.engine.models.families.registry import family_of
from outrider.engine.models.families.settings import Settings
from outrider.engine.models.gguf_settings import stated_settings
from outrider.engine.models.rope import Rope
from outrider.errors import CorruptFile, UnsupportedModel

SIZES: dict[str, Any] = {
    "embedding_length": 128,
    "block_count": 3,
    "feed_forward_length": 96,
    "attention.head_count": 4,
    "attention.layer_norm_rms_epsilon": 1e-4,
    "context_length": 512,
}


def read(architecture: str = "llama", further: Any = None, **changes: Any) -> DecoderConfig:
    """What a file's metadata means; the keys of `changes` have _ for a dot where __ is one."""
    keys = SIZES | {key.replace("__", "."): value for key, value in changes.items()}
    metadata = {f"{architecture}.{key}": value for key, value in keys.items()} | (further or {})
    settings = stated_settings("x.gguf", metadata, architecture) | {"vocab_size": 199}
    return family_of(architecture).read(Settings(settings))


def test_what_the_metadata_may_leave_out_has_its_usual_value() -> None:
    config = read()
    assert (config.num_kv_heads, config.head_dim, config.ropes) == (4, 32, (Rope(10_000.0),))
    assert (config.windows, config.eos_token_ids) == ((0, 0, 0), ())


@pytest.mark.parametrize("key", SIZES)
def test_a_missing_size_is_named(key: str) -> None:
    metadata = {f"llama.{each}": value for each, value in SIZES.items() if each != key}
    with pytest.raises(CorruptFile, match=rf"x\.gguf lacks llama\.{key}"):
        stated_settings("x.gguf", metadata, "llama")


def test_the_tokens_that_end_a_text_a_turn_or_a_message_all_end_it() -> None:
    ends = {"eos": 7, "eot": 9, "eom": 7, "bos": 1}
    further = {f"tokenizer.ggml.{name}_token_id": value for name, value in ends.items()}
    assert read(further=further).eos_token_ids == (7, 9)


def test_scaling_that_is_none_is_taken() -> None:
    assert read(rope__scaling__type="none").ropes == (Rope(10_000.0),)
    assert read(rope__scale_linear=1.0).ropes == (Rope(10_000.0),)


def test_linear_scaling_is_read_under_its_old_and_new_key() -> None:
    expected = (Rope(10_000.0, "linear", factor=4.0),)
    assert read(rope__scale_linear=4.0).ropes == expected
    assert read(rope__scaling__type="linear", rope__scaling__factor=4.0).ropes == expected


def test_factors_of_yarn_in_the_metadata_come_on_top_of_its_own() -> None:
    scaling: dict[str, Any] = {
        "rope__scaling__type": "yarn",
        "rope__scaling__factor": 4.0,
        "rope__scaling__original_context_length": 64,
        "rope__scaling__yarn_beta_fast": 16.0,
    }
    (plain,) = read(**scaling).ropes
    assert (plain.kind, plain.factor, plain.trained_positions) == ("yarn", 4.0, 64)
    assert (plain.beta_fast, plain.beta_slow) == (16.0, 1.0)
    (scaled,) = read(**scaling, rope__scaling__attn_factor=0.5).ropes
    assert scaled.attention_factor == plain.attention_factor * 0.5


def test_every_layer_of_a_llama_with_a_window_slides() -> None:
    assert read(attention__sliding_window=64).windows == (64, 64, 64)


def test_layers_of_gemma_slide_as_a_list_a_period_or_its_usual_period_says() -> None:
    window = {"attention__sliding_window": 64}
    assert read("gemma3", **window).windows == (64, 64, 64)
    pattern = "attention__sliding_window_pattern"
    assert read("gemma3", **window, **{pattern: 2}).windows == (64, 0, 64)
    assert read("gemma3", **window, **{pattern: [False, True, True]}).windows == (0, 64, 64)
    assert read("gemma3").windows == (0, 0, 0)
    assert read("gemma3", **window, block_count=7).windows == (64,) * 5 + (0, 64)


def test_gemmas_query_scale_is_its_head_size_but_for_the_27b() -> None:
    assert read("gemma3", attention__key_length=64).attention_scale == 64**-0.5
    large = read("gemma3", attention__key_length=64, block_count=62)
    assert large.attention_scale == 32**-0.5


def test_layers_of_qwen_slide_where_a_list_names_them() -> None:
    changes = {"attention__sliding_window": 8, "attention__sliding_window_pattern": [0, 0, 1]}
    assert read("qwen2", **changes).windows == (0, 0, 8)


@pytest.mark.parametrize(
    ("architecture", "changes", "seen"),
    [
        ("llama", {"rope__scaling__type": "longrope"}, "rope_type is 'longrope'"),
        ("llama", {"rope__scaling__type": "linear"}, "factor is missing"),
        ("llama", {"rope__scaling__type": "yarn"}, "factor is missing"),
        ("llama", {"expert_count": 8}, "num_experts is 8"),
        ("llama", {"final_logit_softcapping": 30.0}, "final_logit_softcapping is 30.0"),
        ("llama", {"rope__dimension_count": 16}, r"rope\.dimension_count = 16; expected 32"),
        ("llama", {"attention__value_length": 64}, r"attention\.value_length = 64; expected 32"),
        ("llama", {"attention__scale": 0.5}, r"attention\.scale = 0\.5; expected none"),
        ("llama", {"attention__causal": False}, r"attention\.causal = False; expected True"),
        ("llama", {"attention__head_count": [4, 4, 2]}, r"num_attention_heads is \[4, 4, 2\]"),
        ("qwen3", {"attention__sliding_window": 64}, "a sliding window in layers that it does not"),
    ],
)
def test_what_would_give_other_results_is_refused(
    architecture: str, changes: dict[str, Any], seen: str
) -> None:
    with pytest.raises(UnsupportedModel, match=seen):
        read(architecture, **changes)
