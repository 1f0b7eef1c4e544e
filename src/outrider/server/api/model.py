"""The model as the API knows it."""

import random
import secrets
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cached_property, lru_cache
from itertools import count

from outrider.engine.constraints.compiler import ConstraintCompiler, Grammar
from outrider.engine.constraints.limits import ConstraintLimits
from outrider.engine.constraints.vocabulary import GrammarVocabulary
from outrider.engine.sampling import Sampling, SamplingParameters
from outrider.engine.sequence import Sequence as RunningSequence
from outrider.engine.tokenizer import Tokenizer

READERS = 2
"""Threads that lay out and tokenise prompts; more would only take turns with the engine."""
_DECODED_TOKENS = 2**16


def fresh_seeds(seed: int | None) -> Callable[[], int]:
    """Return what gives requests without a seed one of their own; the same ones for a `seed`."""
    if seed is None:
        return lambda: secrets.randbits(63)
    generator = random.Random(seed)  # noqa: S311  for sampling
    lock = threading.Lock()

    def fresh() -> int:
        with lock:
            return generator.getrandbits(63)

    return fresh


class ServedModel:
    """Tokenizer, vocabulary and limits of a model; requests of up to `max_length` tokens.

    `end_token_ids` are its own; `constraint_limits` what a structured output may ask. `fresh_seed`
    is for requests that have none. `readers` are the threads in which prompts are read, so that the
    event loop never waits for a long one, `counter` is for texts that are only tokenised. `device`
    is what holds the cache, CPU or GPU.
    """

    def __init__(
        self,
        tokenizer: Tokenizer,
        *,
        vocabulary_tokens: int,
        max_length: int,
        end_token_ids: frozenset[int],
        fresh_seed: Callable[[], int],
        constraint_limits: ConstraintLimits = ConstraintLimits(),  # noqa: B008  frozen
        device: str = "CPU",
    ) -> None:
        self.tokenizer = tokenizer
        self.vocabulary_tokens = vocabulary_tokens
        self.max_length = max_length
        self.end_token_ids = end_token_ids
        self.device = device
        self.readers = ThreadPoolExecutor(READERS, thread_name_prefix="reader")
        self.counter = ThreadPoolExecutor(1, thread_name_prefix="counter")
        self.token_text = lru_cache(_DECODED_TOKENS)(self._decode_one)
        self._fresh_seed = fresh_seed
        self._constraint_limits = constraint_limits
        self._names = count()

    @cached_property
    def _compiler(self) -> ConstraintCompiler:
        vocabulary = GrammarVocabulary.of(
            self.tokenizer, size=self.vocabulary_tokens, end_token_ids=self.end_token_ids
        )
        return ConstraintCompiler(vocabulary, self._constraint_limits)

    def constraints(self) -> ConstraintCompiler:
        """What compiles structured outputs, made when the first is asked for."""
        return self._compiler

    def sequence(
        self,
        prompt: Sequence[int],
        parameters: SamplingParameters,
        max_tokens: int,
        grammar: Grammar | None = None,
    ) -> RunningSequence:
        """One answer to `prompt`, ready for the engine."""
        return RunningSequence(
            str(next(self._names)),
            prompt,
            max_tokens=max_tokens,
            sampling=Sampling.seeded(
                parameters, end_token_ids=self.end_token_ids, fresh_seed=self._fresh_seed
            ),
            end_token_ids=self.end_token_ids,
            detokenizer=self.tokenizer.detokenizer(
                prompt, skip_special_tokens=parameters.skip_special_tokens
            ),
            constraint=(
                None if grammar is None else grammar.start(ignore_eos=parameters.ignore_eos)
            ),
        )

    def _decode_one(self, token: int) -> str:
        return self.tokenizer.decode([token])
