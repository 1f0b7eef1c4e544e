"""Answers held to a grammar, with and without speculation."""

import json
import re
from collections.abc import Iterator
from typing import Any

import httpx2
import openai
import pytest
from tests.server.asking import CHAT, chat, complete, message, refusal, stream, text_of
from tests.server.serving import NAME, AlphabetModel, Running, api_over, drafting, running

from outrider.engine.tokenizer import Tokenizer
from outrider.server.api.settings import ApiSettings, ResponseMetrics

SCHEMA = {
    "type": "object",
    "properties": {"a": {"enum": ["x", "y"]}, "b": {"type": "boolean"}},
    "required": ["a", "b"],
    "additionalProperties": False,
}
ASKED: dict[str, dict[str, Any]] = {
    "a schema": {"response_format": {"type": "json_schema", "json_schema": {"schema": SCHEMA}}},
    "a schema as vLLM has it": {"structured_outputs": {"json": SCHEMA}},
    "a schema as text": {"structured_outputs": {"json": json.dumps(SCHEMA)}},
    "a regex": {"structured_outputs": {"regex": "[a-f]{3,9}!"}},
    "a choice": {"structured_outputs": {"choice": ["abc", "abd", "xyz"]}},
    "a grammar": {"structured_outputs": {"grammar": 'start: "a" ("b" | "c")+ "d"'}},
}


@pytest.fixture(scope="module")
def speculating(tokenizer: Tokenizer) -> Iterator[Running]:
    settings = ApiSettings(model_names=(NAME,), metrics=ResponseMetrics(spec_decode="detailed"))
    api = api_over(AlphabetModel(), tokenizer, settings=settings, drafter=drafting(), k=4)
    with running(api) as server:
        yield server


def holds(asked: dict[str, Any], text: str) -> bool:
    outputs = asked.get("structured_outputs", {})
    if "regex" in outputs:
        return re.fullmatch(outputs["regex"], text) is not None
    if "choice" in outputs:
        return text in outputs["choice"]
    if "grammar" in outputs:
        return re.fullmatch("a[bc]+d", text) is not None
    found = json.loads(text)
    return found.keys() == {"a", "b"} and found["a"] in {"x", "y"} and found["b"] in {True, False}


@pytest.mark.parametrize("kind", ASKED)
@pytest.mark.parametrize("temperature", [0.0, 1.0])
def test_an_answer_is_what_was_asked_and_the_same_under_speculation(
    kind: str, temperature: float, client: httpx2.Client, speculating: Running
) -> None:
    fields = {"max_tokens": 100, "temperature": temperature, "seed": 4} | ASKED[kind]
    with httpx2.Client(base_url=speculating.url, timeout=60) as other:
        bodies = [chat(each, **fields) for each in (client, other)]
        streamed = text_of(stream(other, **fields))
    texts = [body["choices"][0]["message"]["content"] for body in bodies]
    assert texts[0] == texts[1] == streamed
    if bodies[0]["choices"][0]["finish_reason"] == "stop":
        assert holds(ASKED[kind], texts[0])
    else:
        # A number of letters that no limit ends; all but the schemas end by themselves.
        assert kind == "a grammar"
        assert re.fullmatch("a[bc]*", texts[0])


def test_two_hundred_answers_under_speculation_hold_to_their_schema(speculating: Running) -> None:
    ended = 0
    with httpx2.Client(base_url=speculating.url, timeout=60) as http:
        for seed in range(25):
            fields = {"max_tokens": 200, "temperature": 0.7, "seed": seed, "n": 8}
            for choice in chat(http, **fields, **ASKED["a schema"])["choices"]:
                if choice["finish_reason"] == "stop":
                    ended += 1
                    assert holds(ASKED["a schema"], choice["message"]["content"])
    assert ended == 200


def test_any_json_object_may_be_asked_for(client: httpx2.Client) -> None:
    fields = {"max_tokens": 12, "temperature": 0.0, "response_format": {"type": "json_object"}}
    assert chat(client, **fields)["choices"][0]["message"]["content"].lstrip().startswith("{")


def test_completions_are_held_to_it_too(client: httpx2.Client) -> None:
    body = complete(client, prompt="x", structured_outputs={"choice": ["yes", "no"]})
    assert body["choices"][0]["text"] in {"yes", "no"}


def test_drafted_tokens_that_the_grammar_forbids_are_told_as_invalidated(
    speculating: Running,
) -> None:
    with httpx2.Client(base_url=speculating.url, timeout=60) as http:
        body = chat(http, max_tokens=40, temperature=0.0, structured_outputs={"regex": "(ax)+y"})
    told = body["metrics"]["speculative_decoding"]
    assert told["num_invalidated_draft_tokens"] > 0
    assert sum(told["per_step_drafted"]) == told["num_draft_tokens"]


def test_text_is_asked_for_like_nothing(client: httpx2.Client) -> None:
    fields = {"max_tokens": 9, "temperature": 0.0}
    plain = chat(client, **fields)["choices"][0]["message"]
    assert (
        chat(client, **fields, response_format={"type": "text"})["choices"][0]["message"] == plain
    )


def test_openais_client_asks_for_a_schema(served: Running) -> None:
    with openai.OpenAI(base_url=f"{served.url}/v1", api_key="none") as sdk:
        answer = sdk.chat.completions.create(
            model=NAME,
            messages=[{"role": "user", "content": "x"}],
            max_tokens=60,
            temperature=0.0,
            response_format={
                "type": "json_schema",
                "json_schema": {"name": "found", "schema": SCHEMA, "strict": True},
            },
        )
    content = answer.choices[0].message.content
    assert content is not None
    assert holds({}, content)


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "string", "minLength": 5, "maxLength": 2},
        {"description": "x" * 70_000},
        {"$ref": "#/$defs/missing"},
    ],
    ids=["matches nothing", "too large", "points nowhere"],
)
def test_a_schema_that_cannot_be_enforced_is_refused(
    schema: dict[str, Any], client: httpx2.Client
) -> None:
    asked = {"type": "json_schema", "json_schema": {"schema": schema}}
    error = refusal(client, CHAT, {"messages": message(), "response_format": asked})
    assert error["param"] == "response_format"


def test_a_schema_nested_too_deep_is_refused(client: httpx2.Client) -> None:
    schema: dict[str, Any] = {"type": "string"}
    for _ in range(80):
        schema = {"type": "array", "items": schema}
    asked = {"structured_outputs": {"json": schema}}
    error = refusal(client, CHAT, {"messages": message()} | asked)
    assert error["param"] == "structured_outputs.json"
    assert "64" in error["message"]


@pytest.mark.parametrize(
    ("outputs", "field"),
    [
        ({}, "structured_outputs"),
        ({"jsn": SCHEMA}, "structured_outputs"),
        ({"regex": None, "json_object": False}, "structured_outputs"),
        ({"structural_tag": "{}"}, "structured_outputs.structural_tag"),
        ({"regex": "a", "whitespace_pattern": " "}, "structured_outputs.whitespace_pattern"),
    ],
)
def test_a_structure_that_is_not_done_is_not_taken_for_free_text(
    client: httpx2.Client, outputs: dict[str, Any], field: str
) -> None:
    body = {"messages": message(), "max_tokens": 3, "structured_outputs": outputs}
    assert refusal(client, CHAT, body)["param"] == field
