"""`/v1/completions`: texts to go on with."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Annotated, ClassVar

from pydantic import Field

from outrider.server.api.requests.at_first_fault import Several
from outrider.server.api.requests.fields import GenerationFields, TokenId, Whole
from outrider.server.api.requests.not_supported import NOT_SUPPORTED

Prompts = str | Several[str] | Several[TokenId] | Several[Several[TokenId]]
"""One text or several, as text or as token ids."""


class CompletionRequest(GenerationFields):
    """One or more prompts and how to go on with them."""

    not_supported: ClassVar[Mapping[str, str]] = MappingProxyType(
        {
            **NOT_SUPPORTED,
            "prompt_embeds": "give the prompt as text or token ids",
            "suffix": "write it into the prompt",
        }
    )

    prompt: Annotated[Prompts, Field(union_mode="left_to_right")]
    echo: bool | None = None
    logprobs: Whole | None = None
