"""From what a client sends to the token ids that the model reads."""

import json
from collections.abc import Mapping, Sequence
from typing import Any, cast

from outrider.engine.tokenizer import TextTooLong, Tokenizer
from outrider.errors import InvalidWorkload
from outrider.server.api.errors import ApiError, bad_request
from outrider.server.api.requests.chat import ContentPart, Message
from outrider.server.api.requests.completion import Prompts

_OURS = frozenset(
    {
        "add_generation_prompt",
        "chat_template",
        "continue_final_message",
        "conversation",
        "conversations",
        "documents",
        "max_length",
        "messages",
        "padding",
        "return_assistant_tokens_mask",
        "return_dict",
        "return_tensors",
        "sanitize_control_tokens",
        "self",
        "tokenize",
        "tokenizer_kwargs",
        "tools",
        "truncation",
    }
)
"""What a chat template's variables may not be called."""


def chat_prompt(
    tokenizer: Tokenizer,
    messages: Sequence[Message],
    *,
    chat_template: str | None,
    tools: Sequence[Mapping[str, Any]] | None,
    add_generation_prompt: bool,
    continue_final_message: bool,
    variables: Mapping[str, Any] | None,
    most: int | None = None,
) -> list[int]:
    """Return the token ids of a conversation; ApiError where it cannot be laid out.

    Also for one that plainly has more than `most` tokens, which is known before they are counted.
    """
    if add_generation_prompt and continue_final_message:
        raise bad_request(
            "add_generation_prompt and continue_final_message exclude each other: set one to false",
            "continue_final_message",
        )
    for name in variables or ():
        if name in _OURS:
            raise bad_request(
                f"chat_template_kwargs has {name!r}, which is set otherwise", "chat_template_kwargs"
            )
    try:
        return tokenizer.encode_chat(
            [_as_template_has_it(each, place) for place, each in enumerate(messages)],
            tools=tools,
            chat_template=chat_template,
            add_generation_prompt=add_generation_prompt,
            continue_final_message=continue_final_message,
            variables=variables or {},
            most_tokens=most,
        )
    except TextTooLong as error:
        raise _too_long(error.fewest_tokens, most) from error
    except InvalidWorkload as error:
        raise bad_request(str(error), "messages") from error


def text_prompts(
    tokenizer: Tokenizer,
    prompts: Prompts,
    *,
    add_special_tokens: bool,
    vocabulary_tokens: int,
    most: int | None = None,
) -> list[list[int]]:
    """Return the token ids of one prompt or several; ApiError as in `chat_prompt`."""
    found = []
    for prompt in _several(prompts):
        if isinstance(prompt, str):
            try:
                tokens = tokenizer.encode(
                    prompt, add_special_tokens=add_special_tokens, most_tokens=most
                )
            except TextTooLong as error:
                raise _too_long(error.fewest_tokens, most) from error
            found.append(tokens)
            continue
        for token in prompt:
            check_token(token, vocabulary_tokens, "prompt")
        found.append(list(prompt))
    return found


def count_prompts(prompts: Prompts) -> int:
    """Return how many there are."""
    return len(_several(prompts))


def check_token(token: int, vocabulary_tokens: int, param: str) -> None:
    """Raise ApiError for a token id that the model does not have."""
    if token >= vocabulary_tokens:
        raise bad_request(
            f"token id {token} in {param}; the model has 0 to {vocabulary_tokens - 1}", param
        )


def check_lengths(
    prompts: Sequence[Sequence[int]], *, most: int, limit: int | None, param: str
) -> None:
    """Raise ApiError unless each prompt has 1 to `limit` tokens, and room for one more in `most`.

    The words on length are vLLM's, which clients look for.
    """
    for prompt in prompts:
        if not prompt:
            raise bad_request("an empty prompt; give at least one token", param)
        if limit is not None and len(prompt) > limit:
            raise bad_request(f"a prompt of {len(prompt)} tokens; at most {limit}", "input_tokens")
        if len(prompt) >= most:
            raise _too_long(len(prompt), most)


def _too_long(tokens: int, most: int | None) -> ApiError:
    return bad_request(
        f"This model's maximum context length is {most} tokens. However, your prompt contains at"
        f" least {tokens} input tokens, which leaves no room for an answer. Please reduce the"
        " length of the input prompt.",
        "input_tokens",
    )


def _several(prompts: Prompts) -> Sequence[str | list[int]]:
    if isinstance(prompts, str):
        return [prompts]
    if not prompts:
        raise bad_request("an empty list of prompts; give at least one", "prompt")
    if isinstance(prompts[0], int):
        return [prompts]
    return cast("Sequence[str | list[int]]", prompts)


def _as_template_has_it(message: Message, place: int) -> dict[str, Any]:
    shown: dict[str, Any] = {"role": message.role, "content": _text(message.content, place)}
    shown |= message.model_extra or {}
    calls = shown.get("tool_calls")
    if calls is not None:
        shown["tool_calls"] = _with_parsed_arguments(calls, place)
    return shown


def _text(content: str | list[ContentPart] | None, place: int) -> str:
    if content is None or isinstance(content, str):
        return content or ""
    for part in content:
        if part.type not in ("text", "input_text", "output_text", "refusal") or part.text is None:
            raise bad_request(
                f"messages[{place}] has a part of type {part.type!r}; only text is supported",
                f"messages[{place}].content",
            )
    return "\n".join(part.text or "" for part in content)


def _with_parsed_arguments(calls: object, place: int) -> list[Any]:
    """Chat templates take the arguments of a call as an object, where OpenAI's API has JSON."""
    param = f"messages[{place}].tool_calls"
    if not isinstance(calls, list):
        raise bad_request(f"{param} is no list", param)
    parsed = []
    for call in calls:
        function = call.get("function") if isinstance(call, dict) else None
        if not isinstance(function, dict):
            raise bad_request(f"{param} has a call without a function", param)
        arguments = function.get("arguments")
        if isinstance(arguments, str):
            try:
                arguments = json.loads(arguments) if arguments else {}
            except (ValueError, RecursionError) as error:
                raise bad_request(f"{param} has arguments that are not JSON", param) from error
        parsed.append({**call, "function": {**function, "arguments": arguments}})
    return parsed
