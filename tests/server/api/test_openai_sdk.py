"""The client that most users have, against a real socket."""

import asyncio
from collections.abc import Iterator

import openai
import pytest
from openai.types.chat import ChatCompletionUserMessageParam
from tests.server.serving import NAME, Running

MESSAGES: list[ChatCompletionUserMessageParam] = [{"role": "user", "content": "hi"}]


@pytest.fixture(scope="module")
def sdk(served: Running) -> Iterator[openai.OpenAI]:
    with openai.OpenAI(base_url=f"{served.url}/v1", api_key="none", max_retries=0) as client:
        yield client


def test_a_chat(sdk: openai.OpenAI) -> None:
    answer = sdk.chat.completions.create(
        model=NAME, messages=MESSAGES, temperature=0, max_completion_tokens=4
    )
    assert answer.choices[0].message.content == "abcd"
    assert answer.choices[0].finish_reason == "length"
    assert answer.usage is not None
    assert answer.usage.completion_tokens == 4
    assert answer.usage.prompt_tokens_details is not None


def test_a_stream_with_its_usage(sdk: openai.OpenAI) -> None:
    stream = sdk.chat.completions.create(
        model=NAME,
        messages=MESSAGES,
        temperature=0,
        max_tokens=4,
        stream=True,
        stream_options={"include_usage": True},
    )
    chunks = list(stream)
    text = "".join(each.choices[0].delta.content or "" for each in chunks if each.choices)
    assert text == "abcd"
    assert chunks[-1].usage is not None
    assert chunks[-1].usage.completion_tokens == 4
    assert all(each.usage is None for each in chunks[:-1])


def test_two_answers(sdk: openai.OpenAI) -> None:
    answer = sdk.chat.completions.create(
        model=NAME, messages=MESSAGES, n=2, seed=3, temperature=1.2, max_tokens=24
    )
    assert [choice.index for choice in answer.choices] == [0, 1]
    assert answer.choices[0].message.content != answer.choices[1].message.content


def test_logprobs(sdk: openai.OpenAI) -> None:
    answer = sdk.chat.completions.create(
        model=NAME, messages=MESSAGES, temperature=0, max_tokens=2, logprobs=True, top_logprobs=3
    )
    logprobs = answer.choices[0].logprobs
    assert logprobs is not None
    assert logprobs.content is not None
    assert [each.token for each in logprobs.content] == ["a", "b"]
    assert len(logprobs.content[0].top_logprobs) == 3


def test_a_completion_and_its_stream(sdk: openai.OpenAI) -> None:
    answer = sdk.completions.create(model=NAME, prompt="ab", temperature=0, max_tokens=3)
    assert answer.choices[0].text == "cde"
    stream = sdk.completions.create(
        model=NAME, prompt="ab", temperature=0, max_tokens=3, stream=True
    )
    assert "".join(chunk.choices[0].text for chunk in stream) == "cde"


def test_fields_beyond_openais(sdk: openai.OpenAI) -> None:
    answer = sdk.chat.completions.create(
        model=NAME,
        messages=MESSAGES,
        temperature=0,
        max_tokens=4,
        extra_body={"return_token_ids": True, "top_k": 1, "min_tokens": 2},
    )
    assert answer.choices[0].model_extra is not None
    assert answer.choices[0].model_extra["token_ids"] == [64, 65, 66, 67]


def test_models(sdk: openai.OpenAI) -> None:
    assert [model.id for model in sdk.models.list()] == [NAME]
    assert sdk.models.retrieve(NAME).id == NAME


def test_errors_are_the_ones_that_programs_look_for(sdk: openai.OpenAI) -> None:
    with pytest.raises(openai.NotFoundError, match="does not exist") as missing:
        sdk.chat.completions.create(model="other", messages=MESSAGES)
    assert missing.value.param == "model"
    with pytest.raises(openai.BadRequestError, match="temperature") as bad:
        sdk.chat.completions.create(model=NAME, messages=MESSAGES, temperature=-1)
    assert bad.value.param == "temperature"


def test_sixteen_clients_at_once_without_threads(served: Running) -> None:
    async def ask(client: openai.AsyncOpenAI, place: int) -> str:
        if place % 2:
            stream = await client.chat.completions.create(
                model=NAME, messages=MESSAGES, temperature=0, max_tokens=place + 1, stream=True
            )
            return "".join([each.choices[0].delta.content or "" async for each in stream])
        answer = await client.chat.completions.create(
            model=NAME, messages=MESSAGES, temperature=0, max_tokens=place + 1
        )
        return answer.choices[0].message.content or ""

    async def all_of_them() -> list[str]:
        async with openai.AsyncOpenAI(
            base_url=f"{served.url}/v1", api_key="none", max_retries=0
        ) as client:
            return await asyncio.gather(*(ask(client, place) for place in range(16)))

    assert asyncio.run(all_of_them()) == ["abcdefghijklmnop"[: n + 1] for n in range(16)]
