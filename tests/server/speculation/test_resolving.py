from itertools import product
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.server.speculation.settings import TARGET, ngram, read

from outrider.errors import InvalidSetting
from outrider.server.speculation.resolving import resolve


def test_the_smallest_config_resolves_to_all_that_is_done() -> None:
    resolved = ngram()
    assert (resolved.method, resolved.num_speculative_tokens) == ("ngram", 4)
    assert resolved.checkpoint is None
    assert resolved.verifier.name == "standard"
    assert resolved.k_by_batch_size is None
    assert not resolved.enable_adaptive_verification


def test_resolving_leaves_the_users_settings_as_they_were() -> None:
    config = read(method="ngram", num_speculative_tokens=4, rejection_sample_method="fly")
    before = config.model_copy(deep=True)
    resolve(config, TARGET)
    assert config == before
    assert config.prompt_lookup_min is None
    assert config.fly_window_size is None


def test_what_was_filled_in_is_told_and_only_that() -> None:
    assert ngram(prompt_lookup_max=3).notes == ("prompt_lookup_min was not set: 3",)
    assert ngram(prompt_lookup_min=2, prompt_lookup_max=3).notes == ()


def test_a_method_found_by_its_model_is_told() -> None:
    config = read(model="[ngram]", num_speculative_tokens=2, prompt_lookup_min=2)
    assert resolve(config, TARGET).notes == (
        "method ngram (model is '[ngram]')",
        "prompt_lookup_max was not set: 2",
    )


@pytest.mark.parametrize(
    ("settings", "parts"),
    [
        ({"method": "eagle3", "model": "org/x"}, ["method eagle3,", "vLLM"]),
        ({"method": "mtp"}, ["method mtp,"]),
        ({"method": "qwen3_next_mtp"}, ["method mtp (qwen3_next_mtp is a deprecated spelling"]),
        ({"method": "mtp", "model": "org/x"}, ["method mtp,"]),
        ({"method": "draft_model", "model": "org/eagle3"}, ["eagle3 (model 'org/eagle3' has"]),
        ({"method": "custom_class", "model": "a.B"}, ["no class is loaded from a path"]),
        ({"model": "a.B"}, ["custom_class (model 'a.B' looks like", "no class is loaded"]),
        ({"method": "ngram_gpu"}, ['write "method": "ngram"']),
        ({"method": "extract_hidden_states"}, ["it makes training data"]),
        ({"method": "dflash", "model": "org/x", "xpress_topc": 5}, ["method dflash,"]),
        ({"method": "dspark"}, ["method dspark,"]),
    ],
)
def test_a_method_that_the_engine_does_not_run_is_refused_by_name(
    settings: dict[str, Any], parts: list[str]
) -> None:
    with pytest.raises(InvalidSetting) as raised:
        resolve(read(num_speculative_tokens=4, **settings), TARGET)
    assert "a method that it runs (ngram" in raised.value.expected
    for part in parts:
        assert part in str(raised.value)


def test_k_by_batch_size_is_cut_to_k_and_the_cut_is_told() -> None:
    resolved = ngram(num_speculative_tokens_per_batch_size=[[5, 8, 0], [1, 4, 9]])
    ranges = resolved.k_by_batch_size
    assert ranges is not None
    assert [ranges.k_for(size) for size in (1, 4, 5, 100)] == [4, 4, 0, 0]
    assert resolved.as_dict()["num_speculative_tokens_per_batch_size"] == [[5, 8, 0], [1, 4, 4]]
    assert (
        "[1, 4, 9] in num_speculative_tokens_per_batch_size asks for more than "
        "num_speculative_tokens, and gets 4"
    ) in resolved.notes


RULES: list[dict[str, Any]] = [
    {},
    {"rejection_sample_method": "block"},
    {"rejection_sample_method": "fly"},
    {"rejection_sample_method": "fly", "fly_window_size": 1, "fly_entropy_threshold": 0.5},
    {"rejection_sample_method": "synthetic", "synthetic_acceptance_length": 1.5},
    {"rejection_sample_method": "synthetic", "synthetic_acceptance_rates": [0.5, 0.25]},
]
RANGES: list[dict[str, Any]] = [
    {},
    {"num_speculative_tokens_per_batch_size": [[3, 9, 0], [1, 2, 7]]},
]


@given(
    st.sampled_from(list(product(RULES, RANGES))),
    st.fixed_dictionaries(
        {},
        optional={
            "prompt_lookup_min": st.integers(1, 3),
            "prompt_lookup_max": st.integers(3, 9),
            "enable_adaptive_verification": st.booleans(),
            "model": st.sampled_from(["ngram", "[ngram]"]),
        },
    ),
)
def test_what_is_resolved_resolves_to_itself(
    rule_and_ranges: tuple[dict[str, Any], dict[str, Any]], others: dict[str, Any]
) -> None:
    rule, ranges = rule_and_ranges
    resolved = ngram(num_speculative_tokens=2, **rule, **ranges, **others)
    said = resolved.as_dict()
    lossless = said.pop("lossless")
    again = resolve(read(**said), TARGET)
    assert again.as_dict() == {**said, "lossless": lossless}
    assert again.verification == resolved.verification
    assert again.drafting == resolved.drafting
    assert not any("was not set" in note or "gets" in note for note in again.notes)
