import math
from typing import Any

import pytest

from outrider.engine.sampling import SamplingParameters
from outrider.errors import InvalidSetting


@pytest.mark.parametrize(
    ("name", "value"),
    [
        *(("temperature", value) for value in (-0.5, 1e-9, math.inf, math.nan)),
        *(("seed", value) for value in (-1, 2**63)),
        ("n", 0),
        *(("top_k", value) for value in (-2, 1.5)),
        *(("top_p", value) for value in (0.0, 1.01, math.nan)),
        *(("min_p", value) for value in (-0.1, 1.1, math.nan)),
        *(("repetition_penalty", value) for value in (0.0, -1.0, math.inf, math.nan)),
        *(("presence_penalty", value) for value in (-2.1, 2.1, math.nan)),
        *(("frequency_penalty", value) for value in (-2.1, 2.1, math.nan)),
        *(("logit_bias", {3: value}) for value in (-101, 100.5, math.nan)),
        ("allowed_token_ids", ()),
        ("bad_words_token_ids", ((1,), ())),
        *(("stop", value) for value in (("",), "end", ("end", 3))),
        ("min_tokens", -1),
        ("max_tokens", 0),
        *((name, -2) for name in ("logprobs", "prompt_logprobs")),
    ],
)
def test_a_value_outside_its_range_is_refused_in_one_line_that_names_it(
    name: str, value: Any
) -> None:
    with pytest.raises(InvalidSetting, match=rf"^{name} .*; expected .*; [^\n]*$"):
        SamplingParameters(**{"temperature": 1.0, name: value})


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("temperature", 1e-3),
        ("top_k", -1),
        ("top_p", 1e-9),
        ("min_p", 1.0),
        ("presence_penalty", -2),
        ("logit_bias", {0: -100, 1: 100}),
        ("seed", 2**63 - 1),
        ("logprobs", -1),
    ],
)
def test_the_ends_of_a_range_belong_to_it(name: str, value: Any) -> None:
    assert getattr(SamplingParameters(**{"temperature": 1.0, name: value}), name) == value


def test_more_tokens_than_the_most_cannot_be_the_least() -> None:
    assert SamplingParameters(min_tokens=5, max_tokens=5).min_tokens == 5
    with pytest.raises(InvalidSetting, match="min_tokens 6 and max_tokens 5"):
        SamplingParameters(min_tokens=6, max_tokens=5)


def test_several_greedy_answers_are_refused() -> None:
    with pytest.raises(InvalidSetting, match="n 2 at temperature 0"):
        SamplingParameters(n=2)


def test_only_temperature_zero_is_greedy() -> None:
    assert SamplingParameters().greedy
    assert not SamplingParameters(0.001).greedy


@pytest.mark.parametrize(
    "asked",
    [
        {"logit_bias": {10: 1.0}},
        {"allowed_token_ids": (3, 10)},
        {"bad_words_token_ids": ((3, 4), (5, 10))},
        {"stop_token_ids": (-1,)},
    ],
)
def test_a_token_that_the_model_does_not_have_is_refused(asked: dict[str, Any]) -> None:
    parameters = SamplingParameters(**asked)
    with pytest.raises(InvalidSetting, match=next(iter(asked))):
        parameters.check_token_ids(10)


def test_tokens_that_the_model_has_are_accepted() -> None:
    SamplingParameters(logit_bias={0: 1}, stop_token_ids=(9,)).check_token_ids(10)


def test_the_samples_of_one_request_have_seeds_of_their_own_that_stay_the_same() -> None:
    samples = SamplingParameters(1.0, 7, n=4, top_k=3).samples()
    assert [each.n for each in samples] == [1] * 4
    assert [each.top_k for each in samples] == [3] * 4
    seeds = [each.seed for each in samples]
    assert seeds[0] == 7
    assert seeds[:2] == [each.seed for each in SamplingParameters(1.0, 7, n=2).samples()]
    neighbours = [each.seed for each in SamplingParameters(1.0, 8, n=4).samples()]
    assert len({*seeds, *neighbours}) == 8


def test_samples_without_a_seed_stay_without_one() -> None:
    assert [each.seed for each in SamplingParameters(1.0, n=2).samples()] == [None, None]
