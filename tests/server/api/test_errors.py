import logging

import httpx2
import pytest
from tests.server.asking import CHAT, COMPLETIONS, chat, message, refusal
from tests.server.serving import AlphabetModel, Running, api_over, running

from outrider.engine.tokenizer import Tokenizer


@pytest.mark.parametrize(
    ("fields", "param"),
    [
        ({"messages": []}, "messages"),
        ({"messages": None}, "messages"),
        ({"messages": [{"role": "user", "content": 5}]}, "messages[0].content"),
        ({"messages": [{"content": "x"}]}, "messages[0].role"),
        ({"messages": [{"role": "system", "content": "x"}]}, "messages"),
        (
            {"messages": [{"role": "user", "content": [{"type": "image_url"}]}]},
            "messages[0].content",
        ),
        ({"messages": [{"role": "user", "content": "x", "tool_calls": 3}]},
         "messages[0].tool_calls"),
        ({"temperature": -1}, "temperature"),
        ({"temperature": "hot"}, "temperature"),
        ({"top_p": 0}, "top_p"),
        ({"top_p": 1.5}, "top_p"),
        ({"top_k": -2}, "top_k"),
        ({"min_p": 2}, "min_p"),
        ({"presence_penalty": 3}, "presence_penalty"),
        ({"frequency_penalty": -3}, "frequency_penalty"),
        ({"repetition_penalty": 0}, "repetition_penalty"),
        ({"logit_bias": {"258": 1}}, "logit_bias"),
        ({"logit_bias": {"a": 1}}, "logit_bias.a"),
        ({"logit_bias": {"5": 101}}, "logit_bias"),
        ({"allowed_token_ids": []}, "allowed_token_ids"),
        ({"stop_token_ids": [300]}, "stop_token_ids"),
        ({"stop": [""]}, "stop"),
        ({"stop": ["x"] * 17}, "stop"),
        ({"stop": "x" * 1025}, "stop"),
        ({"n": 0}, "n"),
        ({"n": 17}, "n"),
        ({"n": 2, "temperature": 0}, "n"),
        ({"top_logprobs": 2}, "top_logprobs"),
        ({"logprobs": True, "top_logprobs": 21}, "logprobs"),
        ({"prompt_logprobs": -1}, "prompt_logprobs"),
        ({"max_tokens": 0}, "max_tokens"),
        ({"max_tokens": 10**9}, "max_tokens"),
        ({"seed": 10**30}, "seed"),
        ({"stop": ["a", 5]}, "stop"),
        ({"stream_options": {"include_usage": True}}, "stream_options"),
        ({"stream": True, "prompt_logprobs": 1}, "prompt_logprobs"),
        ({"tool_choice": "required"}, "tool_choice"),
        ({"modalities": ["audio"]}, "modalities"),
        ({"audio": {"voice": "x"}}, "audio"),
        ({"best_of": 3}, "best_of"),
        ({"use_beam_search": True}, "use_beam_search"),
        ({"logits_processors": ["x"]}, "logits_processors"),
        ({"guided_json": {"type": "object"}}, "guided_json"),
        ({"chat_template": "{{ x }}"}, "chat_template"),
        ({"response_format": {"type": "xml"}}, "response_format.type"),
        ({"response_format": {"type": "json_schema"}}, "response_format"),
        ({"structured_outputs": {"regex": "(a"}}, "structured_outputs.regex"),
        ({"structured_outputs": {"choice": []}}, "structured_outputs.choice"),
        ({"structured_outputs": {"grammar": "nonsense"}}, "structured_outputs.grammar"),
        ({"structured_outputs": {"json": "{"}}, "structured_outputs.json"),
        ({"response_format": {"type": "json_schema", "json_schema": {"schema": {"type": 5}}}},
         "response_format"),
        ({"structured_outputs": {"regex": "a", "choice": ["b"]}}, "structured_outputs.choice"),
    ],
)  # fmt: skip
def test_a_bad_field_is_named(client: httpx2.Client, fields: dict[str, object], param: str) -> None:
    error = refusal(client, CHAT, {"messages": message(), "max_tokens": 4} | fields)
    assert error["param"] == param
    assert error["type"] == "BadRequestError"
    assert param.partition("[")[0].partition(".")[0] in error["message"] or param == "messages"


@pytest.mark.parametrize(
    "content",
    [
        b"", b"{", b"nonsense", b"[]", b"null", b'"x"', b"5", b"\xff\xfe", b"[" * 100_000,
        b'{"messages": [{"role": "user", "content": "\\ud800"}]}',
        b'{"temperature": ' + b"9" * 5000 + b"}",
    ],
)  # fmt: skip
@pytest.mark.parametrize("path", [CHAT, COMPLETIONS, "/tokenize", "/detokenize"])
def test_what_is_no_json_object_is_refused(
    client: httpx2.Client, path: str, content: bytes
) -> None:
    response = client.post(path, content=content, headers={"content-type": "application/json"})
    assert response.status_code == 400
    assert response.json()["error"]["type"] == "BadRequestError"


@pytest.mark.parametrize(
    "text",
    [
        b'"\\ud800"', b'"\\ud800 \\udc00"', b'"\\udc00"', b'"\xed\xa0\x80"', b'{"\\ud800": 1}',
        b'["\\ud800"]', b'"\xff"',
    ],
)  # fmt: skip
@pytest.mark.parametrize("field", [b"model", b"bad_words", b"stop", b"prompt", b"unknown", b"user"])
def test_half_a_surrogate_pair_is_no_text(client: httpx2.Client, field: bytes, text: bytes) -> None:
    for path, body in (
        (CHAT, b'{"messages": [{"role": "user", "content": "x"}], "max_tokens": 2'),
        (COMPLETIONS, b'{"prompt": "x", "max_tokens": 2'),
    ):
        content = body + b', "' + field + b'": ' + text + b"}"
        headers = {"content-type": "application/json"}
        response = client.post(path, content=content, headers=headers)
        assert response.status_code == 400, response.text
        assert "not JSON" in response.json()["error"]["message"]


def test_a_whole_surrogate_pair_is_one_character(client: httpx2.Client) -> None:
    content = b'{"prompt": "\\ud83d\\ude00", "max_tokens": 1, "echo": true}'
    response = client.post(
        COMPLETIONS, content=content, headers={"content-type": "application/json"}
    )
    assert response.json()["choices"][0]["text"].startswith("\N{GRINNING FACE}")


def test_a_form_is_no_json(client: httpx2.Client) -> None:
    content_type = {"content-type": "text/plain"}
    response = client.post(CHAT, content=b"{}", headers=content_type)
    assert response.status_code == 400
    told = response.json()["error"]["message"]
    assert told == "Content-Type text/plain; send the body as application/json"


def test_an_unknown_model_is_not_found(client: httpx2.Client) -> None:
    error = refusal(client, CHAT, {"messages": message(), "model": "other"}, status=404)
    assert (error["param"], error["type"]) == ("model", "NotFoundError")
    assert "counter" in error["message"]


def test_an_unknown_address_and_a_wrong_method_have_the_same_shape(client: httpx2.Client) -> None:
    assert client.get("/nowhere").json()["error"]["code"] == 404
    response = client.get(CHAT)
    assert response.status_code == 405
    assert response.json()["error"]["type"] == "MethodNotAllowedError"
    assert response.headers["allow"] == "POST"


def test_unknown_fields_are_ignored_and_logged_once(
    client: httpx2.Client, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.DEBUG, "outrider"):
        for _ in range(2):
            assert chat(client, some_new_field=1)
    told = [record for record in caplog.records if "some_new_field" in record.getMessage()]
    assert len(told) == 1


def test_nothing_given_for_a_field_that_is_not_supported_is_no_use_of_it(
    client: httpx2.Client,
) -> None:
    assert chat(client, use_beam_search=False, best_of=None, audio=None)


def test_an_engine_that_fails_says_so_to_all_and_health_shows_it(tokenizer: Tokenizer) -> None:
    model = AlphabetModel(failing=True)
    with (
        running(api_over(model, tokenizer)) as server,
        httpx2.Client(base_url=server.url) as client,
    ):
        assert client.get("/health").status_code == 200
        # The penalty is not at fault.
        body = {"messages": message(), "max_tokens": 3, "presence_penalty": 1}
        error = refusal(client, CHAT, body, status=500)
        assert error["type"] == "InternalServerError"
        assert "broken on purpose" not in error["message"]
        assert client.get("/health").status_code == 503
        assert refusal(client, CHAT, body, status=500)["message"] == error["message"]
        assert client.get("/metrics").status_code == 200
        streamed = client.post(CHAT, json=body | {"stream": True})
        assert streamed.json()["error"]["code"] == 500


def test_a_failure_midway_ends_a_stream_with_an_error(
    served: Running, tokenizer: Tokenizer
) -> None:
    model = AlphabetModel()
    with (
        running(api_over(model, tokenizer)) as server,
        httpx2.Client(base_url=server.url) as client,
        client.stream(
            "POST", CHAT, json={"messages": message(), "max_tokens": 900, "stream": True}
        ) as response,
    ):
        lines = response.iter_lines()
        for line in lines:
            if '"content":"' in line and '"content":""' not in line:
                break
        model.failing = True
        rest = [line for line in lines if line]
    assert '"code":500' in rest[-2]
    assert rest[-1] == "data: [DONE]"
