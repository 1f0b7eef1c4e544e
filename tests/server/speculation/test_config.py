import json
from typing import Any, get_args

import pytest
from pydantic import ValidationError
from tests.server.speculation.settings import read

from outrider.engine.verification.registry import VERIFIERS
from outrider.errors import InvalidSetting
from outrider.server.speculation.config import SpeculativeConfig
from outrider.server.speculation.reading import read_speculative_config

WHOLE, NUMBER, SWITCH, TEXT = "a whole number", "a number", "true or false", "text"

TABLE: dict[str, tuple[Any, str, Any]] = {
    "method": (None, TEXT, "ngram"),
    "model": (None, TEXT, "org/draft"),
    "num_speculative_tokens": (None, WHOLE, 1),
    "draft_tensor_parallel_size": (None, WHOLE, 1),
    "enforce_eager": (None, SWITCH, False),
    "quantization": (None, TEXT, "fp8"),
    "moe_backend": (None, TEXT, "triton"),
    "attention_backend": (None, TEXT, "auto"),
    "kv_cache_dtype": (None, TEXT, "fp8"),
    "max_model_len": (None, WHOLE, 1),
    "revision": (None, TEXT, "main"),
    "code_revision": (None, TEXT, "main"),
    "draft_load_config": (None, "an object", {"load_format": "auto"}),
    "index_share_for_mtp_iteration": (None, SWITCH, True),
    "disable_padded_drafter_batch": (False, SWITCH, True),
    "disable_eagle_block_drop": (False, SWITCH, True),
    "disable_lookahead_block_hashes": (False, SWITCH, True),
    "draft_lm_head_quantization": (None, "'fp8' or 'nvfp4'", "nvfp4"),
    "use_local_argmax_reduction": (False, SWITCH, True),
    "use_heterogeneous_vocab": (False, SWITCH, True),
    "prompt_lookup_max": (None, WHOLE, 1),
    "prompt_lookup_min": (None, WHOLE, 1),
    "parallel_drafting": (False, SWITCH, True),
    "num_speculative_tokens_per_batch_size": (None, "a list", [[1, 4, 5], [5, 9, 0]]),
    "suffix_decoding_max_tree_depth": (24, WHOLE, 1),
    "suffix_decoding_max_cached_requests": (10_000, WHOLE, 0),
    "suffix_decoding_max_spec_factor": (1.0, NUMBER, 0),
    "suffix_decoding_min_token_prob": (0.1, NUMBER, 1),
    "rejection_sample_method": (
        "standard",
        "'standard', 'synthetic', 'block' or 'fly'",
        "block",
    ),
    "synthetic_acceptance_rates": (None, "a list", [1, 0.5, 0.0]),
    "synthetic_acceptance_length": (None, NUMBER, 1),
    "enable_adaptive_verification": (False, SWITCH, True),
    "draft_sample_method": ("greedy", "'greedy' or 'probabilistic'", "probabilistic"),
    "dspark_draft_topk": (None, WHOLE, 1),
    "xpress_topc": (None, WHOLE, 0),
    "fly_window_size": (None, WHOLE, 1),
    "fly_entropy_threshold": (0.3, NUMBER, 0.0),
    "fly_entropy_top_k": (3, WHOLE, 1),
}
"""vLLM 0.33's keys: default, what a value of another type is told, and a value at the edge."""

OUTSIDE: dict[str, list[Any]] = {
    "model": [""],
    "num_speculative_tokens": [0, -1],
    "draft_tensor_parallel_size": [0],
    "max_model_len": [0],
    "prompt_lookup_max": [0, 2**31],
    "prompt_lookup_min": [0, 10**30],
    "suffix_decoding_max_tree_depth": [0],
    "suffix_decoding_max_cached_requests": [-1],
    "suffix_decoding_max_spec_factor": [-0.1],
    "suffix_decoding_min_token_prob": [-0.1, 1.1],
    "synthetic_acceptance_length": [0.9],
    "dspark_draft_topk": [0],
    "xpress_topc": [-1],
    "fly_window_size": [0],
    "fly_entropy_threshold": [-0.1],
    "fly_entropy_top_k": [0],
    "draft_lm_head_quantization": ["int8"],
    "rejection_sample_method": ["typical"],
    "draft_sample_method": ["sampled"],
}


def as_lists(value: object) -> object:
    return json.loads(json.dumps(value))


def test_the_keys_and_defaults_are_those_of_vllm() -> None:
    defaults = {key: field.default for key, field in SpeculativeConfig.model_fields.items()}
    expected = {key: default for key, (default, _, _) in TABLE.items()}
    assert defaults == {**expected, "tensor_parallel_size": None}


@pytest.mark.parametrize("key", TABLE)
def test_every_key_takes_a_value_of_its_type_as_it_is(key: str) -> None:
    value = TABLE[key][2]
    assert as_lists(getattr(read(**{key: value}), key)) == value


@pytest.mark.parametrize("key", TABLE)
def test_every_key_takes_its_default(key: str) -> None:
    assert read(**{key: TABLE[key][0]}) == SpeculativeConfig()


def of_another_type(key: str) -> list[Any]:
    """Values that are not of the type of `key`, null included where it is not the default."""
    default, expected, example = TABLE[key]
    types = {int, float} if expected == NUMBER else {type(example)}
    values: list[Any] = [True, 3, 2.5, "3", [], {}, {"a": 1}, *([] if default is None else [None])]
    return [value for value in values if type(value) not in types]


@pytest.mark.parametrize(
    ("key", "value"),
    [
        *((key, value) for key in TABLE for value in of_another_type(key)),
        *((key, "a word") for key in TABLE if TABLE[key][1].startswith("'")),
    ],
)
def test_a_value_of_another_type_is_told_with_key_value_and_what_is_expected(
    key: str, value: object
) -> None:
    with pytest.raises(InvalidSetting) as raised:
        read(**{key: value})
    assert raised.value.seen == f"{key} {json.dumps(value)}"
    assert raised.value.expected == TABLE[key][1]


@pytest.mark.parametrize(
    "text", ['{"synthetic_acceptance_rates": [1e999]}', '{"fly_entropy_threshold": 1e999}']
)
def test_infinity_is_no_number_to_a_rule(text: str) -> None:
    with pytest.raises(InvalidSetting, match="Infinity; expected a finite number"):
        read_speculative_config(text)


@pytest.mark.parametrize(
    ("key", "value"), [(key, value) for key, values in OUTSIDE.items() for value in values]
)
def test_a_value_outside_its_range_is_told_with_key_and_value(key: str, value: object) -> None:
    with pytest.raises(InvalidSetting) as raised:
        read(**{key: value})
    assert raised.value.seen == f"{key} {json.dumps(value)}"


def test_an_entry_of_a_list_is_told_with_its_place() -> None:
    with pytest.raises(InvalidSetting) as raised:
        read(synthetic_acceptance_rates=[0.5, 2])
    assert raised.value.seen == "synthetic_acceptance_rates[1] 2"
    with pytest.raises(InvalidSetting) as raised:
        read(num_speculative_tokens_per_batch_size=[[1, 2, 3], [3, 4, "a\nb"]])
    assert str(raised.value).startswith('num_speculative_tokens_per_batch_size[1][2] "a\\nb"')


@pytest.mark.parametrize(
    ("ranges", "message"),
    [
        ([], "an empty num_speculative_tokens_per_batch_size"),
        ([[1, 2]], r"\[1, 2\] in .*three whole numbers"),
        ([[2, 4, 3]], "starts at batch size 2"),
        ([[1, 4, 3], [4, 8, 1]], "do not overlap"),
    ],
)
def test_ranges_of_batch_sizes_are_judged_when_they_are_read(
    ranges: list[list[int]], message: str
) -> None:
    with pytest.raises(InvalidSetting, match=message):
        read(num_speculative_tokens_per_batch_size=ranges)


@pytest.mark.parametrize("value", [1, "1", False, []])
def test_any_tensor_parallel_size_names_the_key_that_is_meant(value: object) -> None:
    with pytest.raises(InvalidSetting, match="'draft_tensor_parallel_size'; rename it"):
        read(tensor_parallel_size=value)
    assert read(tensor_parallel_size=None) == SpeculativeConfig()


def test_a_config_cannot_be_changed() -> None:
    config = read(method="ngram", num_speculative_tokens_per_batch_size=[[1, 4, 5]])
    with pytest.raises(ValidationError, match="frozen"):
        config.method = "suffix"
    assert config.num_speculative_tokens_per_batch_size == ((1, 4, 5),)


def test_a_long_value_is_cut_and_stays_on_one_line() -> None:
    with pytest.raises(InvalidSetting) as raised:
        read(num_speculative_tokens="4\n" * 1000)
    assert len(str(raised.value)) < 200
    assert "\n" not in str(raised.value)


def test_the_rules_that_can_be_written_are_those_that_there_are() -> None:
    field = SpeculativeConfig.model_fields["rejection_sample_method"]
    assert set(get_args(field.annotation)) == set(VERIFIERS)
