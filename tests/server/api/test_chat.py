from typing import Any

import httpx2
import pytest
from tests.server.asking import CHAT, chat, message, refusal, stream, text_of
from tests.server.serving import NAME


def test_an_answer_is_what_the_model_says(client: httpx2.Client) -> None:
    body = chat(client, max_tokens=5)
    [choice] = body["choices"]
    assert choice["message"]["content"] == "abcde"
    assert choice["finish_reason"] == "length"
    assert body["model"] == NAME
    assert body["usage"]["completion_tokens"] == 5
    assert body["usage"]["total_tokens"] == body["usage"]["prompt_tokens"] + 5


def test_a_stream_says_the_same(client: httpx2.Client) -> None:
    chunks = stream(client, max_tokens=5)
    assert chunks[0]["choices"][0]["delta"] == {"role": "assistant", "content": ""}
    assert text_of(chunks) == "abcde"
    assert chunks[-1]["choices"][0]["finish_reason"] == "length"


@pytest.mark.parametrize("field", ["max_tokens", "max_completion_tokens"])
def test_either_name_limits_the_tokens(client: httpx2.Client, field: str) -> None:
    fields = {"max_tokens": None, field: 3}
    assert chat(client, **fields)["usage"]["completion_tokens"] == 3


def test_an_answer_takes_all_the_room_where_nobody_says(client: httpx2.Client) -> None:
    body = chat(client, max_tokens=None)
    assert body["usage"]["total_tokens"] == 1_000
    assert body["choices"][0]["finish_reason"] == "length"


def test_n_answers_share_the_prompt_and_differ(client: httpx2.Client) -> None:
    body = chat(client, n=3, temperature=1, seed=1, max_tokens=32, messages=message("x" * 200))
    texts = [choice["message"]["content"] for choice in body["choices"]]
    assert [choice["index"] for choice in body["choices"]] == [0, 1, 2]
    assert len(set(texts)) == 3
    alone = chat(client, n=1, temperature=1, seed=1, max_tokens=32, messages=message("x" * 200))
    assert alone["choices"][0]["message"]["content"] == texts[0]
    assert alone["usage"]["prompt_tokens"] == body["usage"]["prompt_tokens"]


def test_a_prompt_asked_before_comes_from_the_cache(client: httpx2.Client) -> None:
    first = chat(client, messages=message("y" * 200))
    again = chat(client, messages=message("y" * 200))
    assert first["usage"]["prompt_tokens_details"] == {"cached_tokens": 0}
    assert again["usage"]["prompt_tokens_details"] == {"cached_tokens": 192}


def test_a_stop_string_ends_the_text_and_is_told(client: httpx2.Client) -> None:
    [choice] = chat(client, stop=["zz", "de"])["choices"]
    assert choice["message"]["content"] == "abc"
    assert (choice["finish_reason"], choice["stop_reason"]) == ("stop", "de")


def test_a_stop_string_can_stay(client: httpx2.Client) -> None:
    [choice] = chat(client, stop="de", include_stop_str_in_output=True)["choices"]
    assert choice["message"]["content"] == "abcde"


def test_a_stop_token_is_told_by_its_number(client: httpx2.Client) -> None:
    [choice] = chat(client, stop_token_ids=[67])["choices"]
    assert choice["stop_reason"] == 67
    assert choice["message"]["content"] == "abc"


def test_token_ids_are_returned_on_demand(client: httpx2.Client) -> None:
    body = chat(client, return_token_ids=True, max_tokens=3)
    assert body["choices"][0]["token_ids"] == [64, 65, 66]
    assert len(body["prompt_token_ids"]) == body["usage"]["prompt_tokens"]
    chunks = stream(client, return_token_ids=True, max_tokens=3)
    assert chunks[0]["prompt_token_ids"] == body["prompt_token_ids"]
    ids = [token for chunk in chunks[1:] for token in chunk["choices"][0]["token_ids"]]
    assert ids == [64, 65, 66]


def test_logprobs_tell_the_chosen_token_and_the_likeliest(client: httpx2.Client) -> None:
    [choice] = chat(client, logprobs=True, top_logprobs=2, max_tokens=2)["choices"]
    first, second = choice["logprobs"]["content"]
    assert (first["token"], first["bytes"]) == ("a", [97])
    assert [each["token"] for each in (first, second)] == ["a", "b"]
    assert [each["bytes"] for each in first["top_logprobs"]][:1] == [[97]]
    assert len(first["top_logprobs"]) == 2
    assert first["logprob"] == first["top_logprobs"][0]["logprob"] < 0


def test_prompt_logprobs_begin_with_nothing(client: httpx2.Client) -> None:
    body = chat(client, prompt_logprobs=1, max_tokens=1)
    told = body["prompt_logprobs"]
    assert told[0] is None
    assert len(told) == body["usage"]["prompt_tokens"]
    assert all(isinstance(entry, dict) and len(entry) in (1, 2) for entry in told[1:])


def test_a_seed_fixes_a_random_answer_streamed_or_not(client: httpx2.Client) -> None:
    asked: dict[str, Any] = {
        "temperature": 1.5,
        "seed": 11,
        "max_tokens": 40,
        "return_token_ids": True,
    }
    whole = chat(client, **asked)["choices"][0]["token_ids"]
    chunks = stream(client, **asked)
    streamed = [token for each in chunks[1:] for token in each["choices"][0]["token_ids"]]
    assert whole == streamed
    assert chat(client, **asked | {"seed": 12})["choices"][0]["token_ids"] != whole


def test_without_a_temperature_answers_are_random_as_in_openais_api(client: httpx2.Client) -> None:
    texts = {
        chat(client, temperature=None, max_tokens=30)["choices"][0]["message"]["content"]
        for _ in range(3)
    }
    assert len(texts) > 1


def test_the_template_gets_tools_and_variables(client: httpx2.Client) -> None:
    tool = {"type": "function", "function": {"name": "f", "parameters": {}}}
    assert chat(client, tools=[tool], tool_choice="auto", chat_template_kwargs={"x": 1})
    for ours in ("tokenize", "self", "conversations"):
        asked = {"messages": message(), "chat_template_kwargs": {ours: False}}
        assert refusal(client, CHAT, asked)["param"] == "chat_template_kwargs"


def test_the_last_message_can_be_continued(client: httpx2.Client) -> None:
    messages = [*message(), {"role": "assistant", "content": "ab"}]
    body = chat(client, messages=messages, continue_final_message=True, max_tokens=3)
    assert body["choices"][0]["message"]["content"] == "cde"
    error = refusal(
        client,
        CHAT,
        {"messages": messages, "continue_final_message": True, "add_generation_prompt": True},
    )
    assert error["param"] == "continue_final_message"


def test_parts_of_text_are_one_message(client: httpx2.Client) -> None:
    parts = [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]
    apart = chat(client, messages=[{"role": "user", "content": parts}], return_token_ids=True)
    whole = chat(client, messages=message("a\nb"), return_token_ids=True)
    assert apart["prompt_token_ids"] == whole["prompt_token_ids"]
