"""`/v1/chat/completions`: a conversation to go on with."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Annotated, Any, ClassVar

from pydantic import BaseModel, ConfigDict, Field

from outrider.server.api.requests.at_first_fault import Several
from outrider.server.api.requests.fields import GenerationFields, Whole
from outrider.server.api.requests.not_supported import NOT_SUPPORTED


class ContentPart(BaseModel):
    """A piece of a message; only text is understood."""

    model_config = ConfigDict(extra="allow", frozen=True)

    type: str
    text: str | None = None


class Message(BaseModel):
    """One turn of a conversation; further fields reach the chat template as they are."""

    model_config = ConfigDict(extra="allow", frozen=True)

    role: str
    content: str | Several[ContentPart] | None = None


class ChatFields(BaseModel):
    """How a conversation is laid out for the model."""

    messages: Annotated[Several[Message], Field(min_length=1)]
    tools: Several[dict[str, Any]] | None = None
    add_generation_prompt: bool | None = None
    continue_final_message: bool | None = None
    chat_template_kwargs: dict[str, Any] | None = None


class ChatRequest(ChatFields, GenerationFields):
    """A conversation and how to go on with it."""

    not_supported: ClassVar[Mapping[str, str]] = MappingProxyType(
        {
            **NOT_SUPPORTED,
            "audio": "leave it out",
            "chat_template": "give it to the server, as --chat-template",
            "documents": "write them into a message",
            "function_call": "use tools",
            "functions": "use tools",
            "mm_processor_kwargs": "leave it out",
            "prediction": "leave it out",
            "web_search_options": "leave it out",
        }
    )

    max_completion_tokens: Whole | None = None
    logprobs: bool | None = None
    top_logprobs: Whole | None = None
    tool_choice: str | dict[str, Any] | None = None
    modalities: Several[str] | None = None
