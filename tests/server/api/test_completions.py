import httpx2
import pytest
from tests.server.asking import COMPLETIONS, complete, refusal, stream, text_of


def test_a_text_is_gone_on_with(client: httpx2.Client) -> None:
    body = complete(client, prompt="xab", max_tokens=4)
    assert body["choices"][0]["text"] == "cdef"
    assert body["object"] == "text_completion"
    assert body["usage"]["prompt_tokens"] == 3


def test_a_completion_has_sixteen_tokens_where_nobody_says(client: httpx2.Client) -> None:
    assert complete(client, max_tokens=None)["usage"]["completion_tokens"] == 16


@pytest.mark.parametrize(
    ("prompt", "texts"),
    [
        ("ab", ["cd"]),
        (["ab", "x"], ["cd", "yz"]),
        ([64, 65], ["cd"]),
        ([[64, 65], [87]], ["cd", "yz"]),
    ],
)
def test_prompts_come_as_text_or_tokens_one_or_several(
    client: httpx2.Client, prompt: object, texts: list[str]
) -> None:
    body = complete(client, prompt=prompt, max_tokens=2)
    assert [choice["text"] for choice in body["choices"]] == texts
    assert [choice["index"] for choice in body["choices"]] == list(range(len(texts)))


def test_several_prompts_stream_side_by_side(client: httpx2.Client) -> None:
    chunks = stream(client, COMPLETIONS, prompt=["ab", "x"], max_tokens=3)
    assert (text_of(chunks, 0), text_of(chunks, 1)) == ("cde", "yza")


def test_n_answers_to_each_of_several_prompts_are_numbered_prompt_by_prompt(
    client: httpx2.Client,
) -> None:
    fields = {"temperature": 0.01, "seed": 3, "max_tokens": 2}
    body = complete(client, prompt=["ab", "x"], n=2, **fields)
    assert [choice["text"] for choice in body["choices"]] == ["cd", "cd", "yz", "yz"]
    assert body["usage"]["prompt_tokens"] == 3
    assert body["usage"]["completion_tokens"] == 8


def test_echo_puts_the_prompt_first_streamed_or_not(client: httpx2.Client) -> None:
    assert complete(client, echo=True, max_tokens=2)["choices"][0]["text"] == "abcd"
    assert text_of(stream(client, COMPLETIONS, echo=True, max_tokens=2)) == "abcd"


def test_echo_alone_scores_a_prompt(client: httpx2.Client) -> None:
    [choice] = complete(client, prompt="abd", echo=True, max_tokens=0, logprobs=1)["choices"]
    assert choice["text"] == "abd"
    told = choice["logprobs"]
    assert told["tokens"] == ["a", "b", "d"]
    assert told["text_offset"] == [0, 1, 2]
    assert told["token_logprobs"][0] is None
    _, after_a, after_b = told["top_logprobs"]
    assert list(after_a) == ["b"]
    assert list(after_b) == ["d", "c"]
    assert told["token_logprobs"][2] < told["token_logprobs"][1]


def test_logprobs_have_offsets_into_the_text(client: httpx2.Client) -> None:
    [choice] = complete(client, logprobs=2, max_tokens=3)["choices"]
    told = choice["logprobs"]
    assert told["tokens"] == ["c", "d", "e"]
    assert told["text_offset"] == [0, 1, 2]
    assert [len(top) for top in told["top_logprobs"]] == [2, 2, 2]


def test_offsets_go_on_from_chunk_to_chunk_and_after_an_echo(client: httpx2.Client) -> None:
    for echo, first in ((False, 0), (True, 0)):
        chunks = stream(client, COMPLETIONS, echo=echo, logprobs=1, max_tokens=3)
        offsets = [at for each in chunks for at in each["choices"][0]["logprobs"]["text_offset"]]
        assert offsets == list(range(first, 5 if echo else 3))


def test_tokens_can_be_told_by_their_ids(client: httpx2.Client) -> None:
    [choice] = complete(
        client, logprobs=1, max_tokens=1, return_tokens_as_token_ids=True
    )["choices"]  # fmt: skip
    assert choice["logprobs"]["tokens"] == ["token_id:66"]


def test_the_end_token_ends_the_answer_unless_it_is_ignored(client: httpx2.Client) -> None:
    forced = {"allowed_token_ids": [256], "max_tokens": 3}
    body = complete(client, **forced)
    assert body["choices"][0]["finish_reason"] == "stop"
    assert body["choices"][0]["text"] == ""
    assert body["usage"]["completion_tokens"] == 1
    ignored = complete(client, **forced, ignore_eos=True, skip_special_tokens=False)
    assert ignored["choices"][0]["text"] == "<|end|>" * 3


def test_bad_words_and_biases_reach_the_engine(client: httpx2.Client) -> None:
    assert "d" not in complete(client, bad_words=["d"])["choices"][0]["text"]
    biased = complete(client, logit_bias={"70": 100}, max_tokens=2)
    assert biased["choices"][0]["text"] == "gg"


@pytest.mark.parametrize(
    ("fields", "param"),
    [
        ({"prompt": ""}, "prompt"),
        ({"prompt": []}, "prompt"),
        ({"prompt": [[]]}, "prompt"),
        ({"prompt": [258]}, "prompt"),
        ({"prompt": ["a"] * 65}, "prompt"),
        ({"suffix": "x"}, "suffix"),
        ({"best_of": 2}, "best_of"),
        ({"logprobs": 21}, "logprobs"),
        ({"prompt": "a" * 1_000}, "input_tokens"),
        ({"max_tokens": 0}, "max_tokens"),
        ({"max_tokens": 999, "prompt": "abc"}, "max_tokens"),
        ({"min_tokens": 9}, "min_tokens"),
    ],
)
def test_what_cannot_be_answered_names_the_field(
    client: httpx2.Client, fields: dict[str, object], param: str
) -> None:
    body = {"prompt": "ab", "max_tokens": 4} | fields
    assert refusal(client, COMPLETIONS, body)["param"] == param


def test_a_request_that_leaves_no_token_is_unprocessable(client: httpx2.Client) -> None:
    body = {"prompt": "ab", "allowed_token_ids": [70], "bad_words": ["g"], "max_tokens": 2}
    error = refusal(client, COMPLETIONS, body, status=422)
    assert "every token is forbidden" in error["message"]
    chunks_or_error = client.post(COMPLETIONS, json=body | {"stream": True}).text
    assert '"code":422' in chunks_or_error
    assert chunks_or_error.endswith("data: [DONE]\n\n")
