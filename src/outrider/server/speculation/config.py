"""What a user asks of speculation: vLLM 0.33's keys, types, defaults and ranges."""

from collections.abc import Mapping
from typing import Annotated, Literal

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field

from outrider.engine.drafting.batch_size_ranges import BatchSizeRanges
from outrider.errors import InvalidSetting
from outrider.server.speculation.method_names import known_method

Whole = Annotated[int, Field(ge=0, le=2**31 - 1)]
"""Bounded, since the engine counts tokens in machine integers."""
Count = Annotated[int, Field(ge=1, le=2**31 - 1)]
NotNegative = Annotated[float, Field(ge=0)]
Probability = Annotated[float, Field(ge=0, le=1)]
Text = Annotated[str, Field(min_length=1)]


def _draft_key_meant(value: object) -> None:
    if value is not None:
        raise InvalidSetting(
            "'tensor_parallel_size' is not a valid argument in the speculative_config",
            "'draft_tensor_parallel_size'",
            "rename it, or drop it to let the draft follow the target",
        )


def _checked(ranges: tuple[tuple[int, ...], ...]) -> tuple[tuple[int, ...], ...]:
    BatchSizeRanges([list(each) for each in ranges], num_speculative_tokens=0)
    return ranges


List = Field(strict=False)
"""Of a tuple: a list will do, as JSON has no other."""
Range = Annotated[tuple[int, ...], List]


class SpeculativeConfig(BaseModel):
    """The user's settings as they were given; nothing in it is filled in or rewritten.

    None is vLLM's null: the setting is left to `resolve`. Each value is of its type and within the
    range that it has by itself; what depends on other values is judged when all is resolved.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, allow_inf_nan=False)

    method: Annotated[str, AfterValidator(known_method)] | None = None
    model: Text | None = None
    """A draft checkpoint, a dotted class path, or the name of a method that has no model."""
    num_speculative_tokens: Count | None = None
    draft_tensor_parallel_size: Count | None = None
    tensor_parallel_size: Annotated[None, BeforeValidator(_draft_key_meant)] = None
    """A trap: no value is accepted, the key meant is `draft_tensor_parallel_size`."""
    enforce_eager: bool | None = None
    quantization: Text | None = None
    moe_backend: Text | None = None
    attention_backend: Text | None = None
    """In any case of letters; "auto" is the same as null."""
    kv_cache_dtype: Text | None = None
    max_model_len: Count | None = None
    revision: Text | None = None
    code_revision: Text | None = None
    draft_load_config: Mapping[str, object] | None = None
    index_share_for_mtp_iteration: bool | None = None
    disable_padded_drafter_batch: bool = False
    disable_eagle_block_drop: bool = False
    disable_lookahead_block_hashes: bool = False
    draft_lm_head_quantization: Literal["fp8", "nvfp4"] | None = None
    use_local_argmax_reduction: bool = False
    use_heterogeneous_vocab: bool = False
    prompt_lookup_max: Count | None = None
    prompt_lookup_min: Count | None = None
    parallel_drafting: bool = False
    num_speculative_tokens_per_batch_size: (
        Annotated[tuple[Range, ...], List, AfterValidator(_checked)] | None
    ) = None
    """Inclusive [start, end, K]."""
    suffix_decoding_max_tree_depth: Count = 24
    suffix_decoding_max_cached_requests: Whole = 10_000
    suffix_decoding_max_spec_factor: NotNegative = 1.0
    suffix_decoding_min_token_prob: Probability = 0.1
    rejection_sample_method: Literal["standard", "synthetic", "block", "fly"] = "standard"
    synthetic_acceptance_rates: Annotated[tuple[Probability, ...], List] | None = None
    synthetic_acceptance_length: Annotated[float, Field(ge=1)] | None = None
    enable_adaptive_verification: bool = False
    draft_sample_method: Literal["greedy", "probabilistic"] = "greedy"
    dspark_draft_topk: Count | None = None
    xpress_topc: Whole | None = None
    fly_window_size: Count | None = None
    fly_entropy_threshold: NotNegative = 0.3
    """In nats."""
    fly_entropy_top_k: Count = 3


KEYS = tuple(SpeculativeConfig.model_fields)
