"""What chats and completions have in common."""

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar

from pydantic import BaseModel, ConfigDict, Field

from outrider.server.api.requests.at_first_fault import Keyed, Several
from outrider.server.api.requests.structured_output import ResponseFormat, StructuredOutputs

Whole = Annotated[int, Field(ge=-(2**63), lt=2**63)]
"""Bounded, since the engine counts in machine integers."""
Count = Annotated[int, Field(ge=0, lt=2**31)]
TokenId = Annotated[int, Field(ge=0, lt=2**31)]
Number = Annotated[float, Field(allow_inf_nan=False)]


class StreamOptions(BaseModel):
    """Whether a stream tells how many tokens it took, at its end and on the way."""

    model_config = ConfigDict(extra="ignore", frozen=True)

    include_usage: bool | None = None
    continuous_usage_stats: bool | None = None


class GenerationFields(BaseModel):
    """Sampling, stopping and streaming, under OpenAI's and vLLM's names; None is the default.

    Unknown fields are ignored, as in vLLM.
    """

    model_config = ConfigDict(extra="allow", frozen=True)
    not_supported: ClassVar[Mapping[str, str]]
    """Fields that would change the answer and that this server does not do, and the advice."""

    model: str | None = None
    user: str | None = None

    n: Whole | None = None
    temperature: Number | None = None
    top_p: Number | None = None
    top_k: Whole | None = None
    min_p: Number | None = None
    repetition_penalty: Number | None = None
    presence_penalty: Number | None = None
    frequency_penalty: Number | None = None
    logit_bias: Keyed[TokenId, Number] | None = None
    allowed_token_ids: Several[TokenId] | None = None
    bad_words: Several[str] | None = None
    seed: Whole | None = None

    stop: str | Several[str] | None = None
    stop_token_ids: Several[TokenId] | None = None
    include_stop_str_in_output: bool | None = None
    ignore_eos: bool | None = None
    min_tokens: Whole | None = None
    max_tokens: Whole | None = None
    skip_special_tokens: bool | None = None
    prompt_logprobs: Whole | None = None

    stream: bool | None = None
    stream_options: StreamOptions | None = None
    return_token_ids: bool | None = None
    return_tokens_as_token_ids: bool | None = None
    add_special_tokens: bool | None = None

    response_format: ResponseFormat | None = None
    structured_outputs: StructuredOutputs | None = None

    @property
    def unknown(self) -> Mapping[str, Any]:
        """What was given and is no field."""
        return self.model_extra or {}

    @property
    def wants_usage(self) -> bool:
        """Whether a stream ends with a chunk on what it took."""
        return self.stream_options is not None and bool(self.stream_options.include_usage)
