from typing import Any

import pytest

from outrider.engine.tokenizer import TextTooLong, Tokenizer
from outrider.server.api.errors import ApiError
from outrider.server.api.prompts import chat_prompt, text_prompts
from outrider.server.api.requests.chat import Message

SHOW = "{% for m in messages %}{{ m.tool_calls[0].function.arguments.city }}{% endfor %}"


def shown(tokenizer: Tokenizer, template: str, *messages: dict[str, Any], **more: Any) -> str:
    asked: dict[str, Any] = {
        "chat_template": template, "tools": None, "add_generation_prompt": False,
        "continue_final_message": False, "variables": None,
    }  # fmt: skip
    read = [Message.model_validate(each) for each in messages]
    found = chat_prompt(tokenizer, read, **asked | more)
    return tokenizer.decode(found)


def call(arguments: object) -> dict[str, Any]:
    function = {"name": "weather", "arguments": arguments}
    return {"role": "assistant", "tool_calls": [{"type": "function", "function": function}]}


@pytest.mark.parametrize("arguments", ['{"city": "Cork"}', {"city": "Cork"}])
def test_templates_get_the_arguments_of_a_call_as_an_object(
    tokenizer: Tokenizer, arguments: object
) -> None:
    assert shown(tokenizer, SHOW, call(arguments)) == "Cork"


@pytest.mark.parametrize("arguments", ["{", "[" * 100_000])
def test_arguments_that_are_no_json_are_refused(tokenizer: Tokenizer, arguments: str) -> None:
    with pytest.raises(ApiError) as refused:
        shown(tokenizer, SHOW, call(arguments))
    assert refused.value.param == "messages[0].tool_calls"


def test_templates_get_tools_variables_and_further_fields(tokenizer: Tokenizer) -> None:
    template = "{{ tools[0].x }}{{ thinking }}{{ messages[0].name }}{{ messages[0].content }}"
    message = {"role": "user", "name": "Ann", "content": "hi"}
    said = shown(tokenizer, template, message, tools=[{"x": "t"}], variables={"thinking": "off"})
    assert said == "toffAnnhi"


def test_a_template_that_asks_for_what_there_is_not_is_the_clients_problem(
    tokenizer: Tokenizer,
) -> None:
    with pytest.raises(ApiError) as refused:
        shown(tokenizer, "{{ messages[0].a.b.c }}", {"role": "user", "content": "x"})
    assert (refused.value.status, refused.value.param) == (400, "messages")


def test_a_message_without_content_is_an_empty_one(tokenizer: Tokenizer) -> None:
    said = shown(tokenizer, "{{ messages[0].content }}", {"role": "user", "content": None})
    assert said == ""


def test_a_text_that_is_plainly_too_long_is_not_cut_into_tokens(tokenizer: Tokenizer) -> None:
    text = "a" * 10_000
    with pytest.raises(TextTooLong) as refused:
        tokenizer.encode(text, most_tokens=100)
    assert 100 < refused.value.fewest_tokens <= len(tokenizer.encode(text))
    assert len(tokenizer.encode("a" * 100, most_tokens=100)) == 100


def test_a_prompt_that_is_plainly_too_long_names_its_tokens(tokenizer: Tokenizer) -> None:
    asked = {"role": "user", "content": "a" * 10_000}
    with pytest.raises(ApiError) as chat:
        shown(tokenizer, "{{ messages[0].content }}", asked, most=100)
    with pytest.raises(ApiError) as completion:
        text_prompts(
            tokenizer, "a" * 10_000, add_special_tokens=False, vocabulary_tokens=258, most=100
        )
    for refused in (chat, completion):
        assert refused.value.param == "input_tokens"
        assert "maximum context length is 100 tokens" in refused.value.message
