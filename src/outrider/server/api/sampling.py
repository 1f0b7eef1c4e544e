"""From the fields of a request to what the engine is asked to do."""

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any

from outrider.engine.sampling.bad_words import tokenize_bad_words
from outrider.engine.sampling.parameters import SamplingParameters
from outrider.errors import InvalidSetting
from outrider.server.api.errors import bad_request, refused
from outrider.server.api.requests.fields import GenerationFields
from outrider.server.api.settings import RequestLimits

DEFAULTS: Mapping[str, Any] = MappingProxyType({"temperature": 1.0})
"""OpenAI's, where neither the request nor the model's makers say otherwise."""

RECOMMENDED = ("temperature", "top_p", "top_k", "min_p", "repetition_penalty")
"""What a model's `generation_config.json` may recommend, of vLLM's list."""

_AS_THEY_ARE = (
    *RECOMMENDED,
    "n",
    "presence_penalty",
    "frequency_penalty",
    "logit_bias",
    "include_stop_str_in_output",
    "ignore_eos",
    "min_tokens",
    "skip_special_tokens",
)
_AS_TUPLES = ("allowed_token_ids", "stop_token_ids")
_GREEDY_BELOW = 1e-5
_LOWEST_RANDOM = 1e-2


def sampling_parameters(
    request: GenerationFields,
    *,
    logprobs: int | None,
    prompt_logprobs: int | None,
    recommended: Mapping[str, Any],
    encode: Callable[[str], Sequence[int]],
    vocabulary_tokens: int,
    limits: RequestLimits,
) -> SamplingParameters:
    """Return what `request` asks, with `logprobs` tokens told beside each of the output.

    `max_tokens` is left to who knows the prompt. Raises ApiError, 400, for what is out of range.
    """
    given = {
        name: value
        for name in (*_AS_THEY_ARE, *_AS_TUPLES)
        if (value := getattr(request, name)) is not None
    }
    asked = {**DEFAULTS, **recommended, **given}
    for name in _AS_TUPLES:
        if name in given:
            asked[name] = tuple(given[name])
    asked["temperature"] = _temperature(asked["temperature"])
    _check_at_most("n", request.n, limits.n)
    _check_at_most("logprobs", logprobs, limits.logprobs)
    _check_at_most("prompt_logprobs", prompt_logprobs, limits.logprobs)
    try:
        parameters = SamplingParameters(
            **asked,
            seed=_seed(request.seed),
            stop=_stop(request.stop, limits),
            bad_words_token_ids=tokenize_bad_words(request.bad_words or (), encode),
            logprobs=logprobs,
            prompt_logprobs=prompt_logprobs,
        )
        parameters.check_token_ids(vocabulary_tokens)
    except InvalidSetting as error:
        raise refused(error, FIELDS) from error
    return parameters


FIELDS = frozenset(
    {*_AS_THEY_ARE, *_AS_TUPLES, "seed", "stop", "logprobs", "max_tokens", "bad_words_token_ids"}
)
"""What may be at fault."""


def _temperature(asked: float) -> float:
    """As in vLLM: next to nothing is greedy, and what is too low for random choices is raised."""
    if 0 <= asked < _GREEDY_BELOW:
        return 0.0
    return max(asked, _LOWEST_RANDOM) if asked > 0 else asked


def _seed(asked: int | None) -> int | None:
    """As in vLLM -1 is none; other negative numbers stand for one that the engine takes."""
    return None if asked in (None, -1) else asked % 2**63


def _stop(asked: str | list[str] | None, limits: RequestLimits) -> tuple[str, ...]:
    stop = (asked,) if isinstance(asked, str) else tuple(asked or ())
    if len(stop) > limits.stop_strings:
        raise bad_request(
            f"{len(stop)} stop strings; at most {limits.stop_strings} are allowed", "stop"
        )
    if any(len(each) > limits.stop_characters for each in stop):
        raise bad_request(f"a stop string of more than {limits.stop_characters} characters", "stop")
    return stop


def _check_at_most(name: str, asked: int | None, most: int) -> None:
    if asked is not None and (asked > most or (asked < 0 and name != "n")):
        raise bad_request(f"{name} {asked}; expected 0 to {most}", name)
