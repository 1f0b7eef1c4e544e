from typing import Any

import pytest

from outrider.engine.sampling import SamplingParameters
from outrider.server.api.errors import ApiError
from outrider.server.api.requests.chat import ChatRequest
from outrider.server.api.sampling import sampling_parameters
from outrider.server.api.settings import RequestLimits


def parameters(recommended: dict[str, Any] | None = None, **fields: Any) -> SamplingParameters:
    return sampling_parameters(
        ChatRequest.model_validate({"messages": [{"role": "user", "content": "x"}]} | fields),
        logprobs=None,
        prompt_logprobs=None,
        recommended=recommended or {},
        encode=lambda text: list(text.encode()),
        vocabulary_tokens=258,
        limits=RequestLimits(),
    )


def test_nothing_asked_is_random_sampling_with_nothing_else() -> None:
    assert parameters() == SamplingParameters(temperature=1.0)


@pytest.mark.parametrize(
    ("asked", "taken"),
    [(0, 0.0), (1e-9, 0.0), (1e-5, 0.01), (0.005, 0.01), (0.01, 0.01), (0.7, 0.7), (2, 2.0)],
)
def test_temperatures_next_to_nothing_are_taken_as_vllm_takes_them(
    asked: float, taken: float
) -> None:
    assert parameters(temperature=asked).temperature == taken


def test_the_makers_recommendation_stands_where_the_request_is_silent() -> None:
    recommended = {"temperature": 0.6, "top_k": 20}
    taken = parameters(recommended, top_k=5)
    assert (taken.temperature, taken.top_k) == (0.6, 5)
    assert parameters(recommended, temperature=None).temperature == 0.6


@pytest.mark.parametrize(
    ("asked", "taken"), [(None, None), (-1, None), (0, 0), (5, 5), (-2, 2**63 - 2)]
)
def test_seeds_may_be_any_that_vllm_takes(asked: int | None, taken: int | None) -> None:
    assert parameters(seed=asked).seed == taken


def test_everything_else_reaches_the_engine() -> None:
    fields: dict[str, Any] = {
        "n": 2, "top_p": 0.5, "min_p": 0.1, "repetition_penalty": 1.1, "presence_penalty": 0.2,
        "frequency_penalty": -0.3, "ignore_eos": True, "min_tokens": 3,
        "include_stop_str_in_output": True, "skip_special_tokens": False,
    }  # fmt: skip
    taken = parameters(
        **fields, stop="x", stop_token_ids=[7], allowed_token_ids=[1, 2], bad_words=["no"],
        logit_bias={"5": -1},
    )  # fmt: skip
    assert {name: getattr(taken, name) for name in fields} == fields
    assert taken.stop == ("x",)
    assert taken.stop_token_ids == (7,)
    assert taken.allowed_token_ids == (1, 2)
    assert taken.bad_words_token_ids == ((110, 111),)
    assert taken.logit_bias == {5: -1.0}


def test_what_is_out_of_range_names_its_field() -> None:
    with pytest.raises(ApiError) as refused:
        parameters(bad_words=["\N{OGHAM LETTER BEITH}"], temperature=-0.5)
    assert (refused.value.status, refused.value.param) == (400, "temperature")
