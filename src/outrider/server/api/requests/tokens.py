"""`/tokenize` and `/detokenize`."""

from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field

from outrider.server.api.requests.at_first_fault import Several
from outrider.server.api.requests.chat import Message
from outrider.server.api.requests.fields import TokenId


class TokenizeRequest(BaseModel):
    """A `prompt`, or the `messages` of a conversation, to be told the tokens of."""

    model_config = ConfigDict(extra="ignore", frozen=True)

    model: str | None = None
    prompt: str | None = None
    messages: Annotated[Several[Message], Field(min_length=1)] | None = None
    tools: Several[dict[str, Any]] | None = None
    add_special_tokens: bool | None = None
    add_generation_prompt: bool | None = None
    continue_final_message: bool | None = None
    chat_template_kwargs: dict[str, Any] | None = None
    return_token_strs: bool | None = None


class DetokenizeRequest(BaseModel):
    """Token ids to be told the text of."""

    model_config = ConfigDict(extra="ignore", frozen=True)

    model: str | None = None
    tokens: Several[TokenId]
