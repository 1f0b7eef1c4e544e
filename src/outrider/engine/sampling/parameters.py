"""What a request may ask of sampling, checked once."""

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import KW_ONLY, dataclass, replace
from types import MappingProxyType
from typing import Any, Self

import numpy as np

from outrider.errors import InvalidSetting

LOWEST_TEMPERATURE = 1e-3
"""Below it float32 logits divided by the temperature lose their meaning; 0 stays exact."""

HIGHEST_BIAS = 100.0
"""Logit biases lie between minus this and this, as in OpenAI's API."""


@dataclass(frozen=True, slots=True)
class SamplingParameters:
    """What a request asks of sampling and of stopping, under vLLM's names.

    The defaults are greedy decoding with nothing else asked. Raises `InvalidSetting` for a value
    outside its range, or for two that exclude each other.
    """

    temperature: float = 0.0
    """0 is greedy; otherwise finite and at least `LOWEST_TEMPERATURE`."""
    seed: int | None = None
    """Fixes the randomness, whatever else is in the batch: in [0, 2**63); None is fresh each time.
    The samples of n > 1 have the seeds that `samples` derives."""
    _: KW_ONLY
    n: int = 1
    """How many answers to one prompt; more than 1 only when sampling is random."""

    top_k: int = 0
    """Only the k most likely tokens, and those as likely as the last of them; 0 or -1 is off."""
    top_p: float = 1.0
    """Only the fewest most likely tokens with this much probability together, in (0, 1]."""
    min_p: float = 0.0
    """Only tokens with at least this share of the most likely one's probability, in [0, 1]."""

    repetition_penalty: float = 1.0
    """Positive logits of tokens in prompt or output are divided by it, others multiplied; > 0."""
    presence_penalty: float = 0.0
    """Taken from the logits of tokens in the output, in [-2, 2]."""
    frequency_penalty: float = 0.0
    """Taken from a token's logit once for each time it is in the output, in [-2, 2]."""
    logit_bias: Mapping[int, float] | None = None
    """Added to the logits of single tokens, in [-HIGHEST_BIAS, HIGHEST_BIAS]."""
    allowed_token_ids: tuple[int, ...] | None = None
    """The only tokens that may be chosen; None allows all."""
    bad_words_token_ids: tuple[tuple[int, ...], ...] = ()
    """Runs of tokens that the output must not complete, see `tokenize_bad_words`."""

    stop: tuple[str, ...] = ()
    """Strings that end the text where they are first completed."""
    include_stop_str_in_output: bool = False
    """Whether the text keeps the stop string or the stop token that ended it."""
    stop_token_ids: tuple[int, ...] = ()
    """Tokens that end the output, besides the model's own end tokens; they are part of it."""
    ignore_eos: bool = False
    """Whether the model's own end tokens are tokens like any other."""
    min_tokens: int = 0
    """How many output tokens come before anything may stop; end tokens are impossible till then."""
    max_tokens: int | None = None
    """The most output tokens, at least 1; None leaves it to the room that the model has."""
    skip_special_tokens: bool = True
    """Whether special tokens are left out of the text."""

    logprobs: int | None = None
    """How many of the most likely tokens are reported beside each output token; -1 is all."""
    prompt_logprobs: int | None = None
    """The same for each prompt token but the first."""

    def __post_init__(self) -> None:
        for name, (accepts, expected, remedy) in _RANGES.items():
            value = getattr(self, name)
            if not accepts(value):
                raise InvalidSetting(f"{name} {value!r}", expected, remedy)
        if self.greedy and self.n > 1:
            raise InvalidSetting(
                f"n {self.n} at temperature 0",
                "n 1, since all answers would be the same",
                "set n to 1 or raise the temperature",
            )
        if self.max_tokens is not None and self.min_tokens > self.max_tokens:
            raise InvalidSetting(
                f"min_tokens {self.min_tokens} and max_tokens {self.max_tokens}",
                "min_tokens no larger than max_tokens",
                "lower min_tokens or raise max_tokens",
            )

    @property
    def greedy(self) -> bool:
        """Whether the most likely token is always taken, with no randomness."""
        return self.temperature == 0

    def check_token_ids(self, vocabulary_tokens: int) -> None:
        """Raise `InvalidSetting` for a token id that a vocabulary of that size does not have."""
        for name, ids in (
            ("logit_bias", self.logit_bias or ()),
            ("allowed_token_ids", self.allowed_token_ids or ()),
            ("bad_words_token_ids", (token for run in self.bad_words_token_ids for token in run)),
            ("stop_token_ids", self.stop_token_ids),
        ):
            _check_ids(name, ids, vocabulary_tokens)

    def samples(self) -> list[Self]:
        """Return one set of parameters for each of the n answers, each with n 1.

        The first keeps the seed, so that asking for more answers leaves it as it was. Answer i has
        the seed that NumPy's `SeedSequence(seed, spawn_key=(i,))` gives, which no other request's
        seed is likely to be.
        """
        return [replace(self, n=1, seed=self._seed_of(i)) for i in range(self.n)]

    def _seed_of(self, index: int) -> int | None:
        if self.seed is None or index == 0:
            return self.seed
        sequence = np.random.SeedSequence(self.seed, spawn_key=(index,))
        return int(sequence.generate_state(1, np.uint64)[0] >> np.uint64(1))


def _check_ids(name: str, ids: Iterable[int], vocabulary_tokens: int) -> None:
    for token in ids:
        if not 0 <= token < vocabulary_tokens:
            raise InvalidSetting(
                f"token id {token} in {name}",
                f"one of the model's, 0 to {vocabulary_tokens - 1}",
                "take token ids from this model's tokenizer",
            )


def _is_bias(bias: Mapping[int, float] | None) -> bool:
    return bias is None or all(-HIGHEST_BIAS <= each <= HIGHEST_BIAS for each in bias.values())


def _are_texts(texts: object) -> bool:
    # A bare string would be taken for a list of its letters.
    return isinstance(texts, tuple) and all(isinstance(each, str) and each for each in texts)


_Range = tuple[Callable[[Any], bool], str, str]
_PENALTY: _Range = (
    lambda value: -2 <= value <= 2,  # noqa: PLR2004
    "a number from -2 to 2",
    "use 0 to turn it off",
)
_LOGPROBS: _Range = (
    lambda count: count is None or count >= -1,
    "a count of at least 0, -1 for the whole vocabulary, or nothing",
    "use a small number such as 5",
)
_RANGES: Mapping[str, _Range] = MappingProxyType(
    {
        "temperature": (
            lambda value: value == 0 or LOWEST_TEMPERATURE <= value < math.inf,
            f"0 or a finite number of at least {LOWEST_TEMPERATURE}",
            "use 0 for greedy decoding or a value such as 0.7",
        ),
        "seed": (
            lambda seed: seed is None or 0 <= seed < 2**63,
            "an integer from 0 to 2**63 - 1",
            "choose a seed in that range, or none",
        ),
        "n": (lambda n: n >= 1, "1 or more", "ask for at least one answer"),
        "top_k": (
            lambda k: isinstance(k, int) and k >= -1,
            "a whole number of at least 1, or 0 for off",
            "use 0 to turn it off",
        ),
        "top_p": (
            lambda p: 0 < p <= 1,
            "a number above 0 and up to 1",
            "use 1 to turn it off",
        ),
        "min_p": (lambda p: 0 <= p <= 1, "a number from 0 to 1", "use 0 to turn it off"),
        "repetition_penalty": (
            lambda value: 0 < value < math.inf,
            "a finite number above 0",
            "use 1 to turn it off",
        ),
        "presence_penalty": _PENALTY,
        "frequency_penalty": _PENALTY,
        "logit_bias": (
            _is_bias,
            f"biases from -{HIGHEST_BIAS:.0f} to {HIGHEST_BIAS:.0f}",
            "bring them into that range",
        ),
        "allowed_token_ids": (
            lambda ids: ids is None or len(ids) > 0,
            "at least one token, or nothing to allow all",
            "name the tokens that may be chosen",
        ),
        "bad_words_token_ids": (all, "runs of at least one token", "leave out the empty one"),
        "stop": (_are_texts, "a tuple of strings, none of them empty", "leave out what is empty"),
        "min_tokens": (lambda count: count >= 0, "0 or more", "use 0 to turn it off"),
        "max_tokens": (
            lambda count: count is None or count >= 1,
            "1 or more",
            "raise max_tokens to at least 1",
        ),
        "logprobs": _LOGPROBS,
        "prompt_logprobs": _LOGPROBS,
    }
)
"""What each field accepts, in words too, and what to do instead."""
