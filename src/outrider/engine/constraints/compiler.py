"""Makes constraints out of what requests ask, once for all requests that ask the same."""

import re
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import lru_cache
from typing import TypeVar

from llguidance import LLMatcher, LLParserLimits

from outrider.engine.constraints.grammar import GrammarConstraint, reason_of
from outrider.engine.constraints.grammar_text import grammar_text
from outrider.engine.constraints.limits import ConstraintLimits
from outrider.engine.constraints.spec import ConstraintSpec
from outrider.engine.constraints.vocabulary import GrammarVocabulary
from outrider.errors import InvalidSetting

KEPT_GRAMMARS = 64

STACK_BYTES = 256 * 2**20
"""llguidance follows rules and references by recursion, and a process that runs out of stack dies:
3,000 rules in a chain, 30 kB of text, are enough for the usual 8 MiB."""

_REASON_LETTERS = 200
_REASON = re.compile(r"^error: (.*)$", re.MULTILINE)
"""Where a regex parser says why, after a picture of its own."""
_JSON_PLACE = re.compile(r"^at 1\(8\): failed to compile JSON schema: ")
"""Where in the grammar around it a schema is, which its author never saw."""

_Result = TypeVar("_Result")


@dataclass(frozen=True, slots=True, eq=False)
class Grammar:
    """A constraint that was found sound, from which any number of requests start."""

    matcher: LLMatcher
    vocabulary: GrammarVocabulary

    def start(self, *, ignore_eos: bool = False) -> GrammarConstraint:
        """Return a constraint for one request, or for one of its n answers."""
        return GrammarConstraint(self.matcher, self.vocabulary, ignore_eos=ignore_eos)


class ConstraintCompiler:
    """Compiles constraints for one model and keeps the last few.

    Takes about a millisecond for a usual schema and a second for one at the edge of what is
    possible, so it does not belong on the thread that runs the steps. Several threads may call it.
    """

    def __init__(
        self,
        vocabulary: GrammarVocabulary,
        limits: ConstraintLimits = ConstraintLimits(),  # noqa: B008  frozen
    ) -> None:
        self.vocabulary = vocabulary
        self.limits = limits
        self._kept = lru_cache(KEPT_GRAMMARS)(self._compile)

    def compile(self, spec: ConstraintSpec) -> Grammar:
        """Return the grammar of `spec`.

        Raises `InvalidSetting` for one beyond the limits, or that does not parse, uses what
        llguidance lacks, matches nothing, or matches nothing but the empty text.
        """
        return self._kept(spec)

    def _compile(self, spec: ConstraintSpec) -> Grammar:
        self.limits.check(spec)
        return _on_a_deep_stack(lambda: self._compile_here(spec))

    def _compile_here(self, spec: ConstraintSpec) -> Grammar:
        try:
            text = grammar_text(spec)
        except Exception as error:
            raise _refusal(spec, str(error)) from error
        limits = LLParserLimits(verbose_errors=False)
        wrong, told = LLMatcher.validate_grammar_with_warnings(
            text, self.vocabulary.tokens, limits=limits
        )
        if wrong:
            raise _refusal(spec, told[0])
        matcher = LLMatcher(self.vocabulary.tokens, text, log_level=0, limits=limits)
        # The first look builds tables that copies share, and may find the grammar too complex.
        first = self.vocabulary.allowed_by(matcher)
        if matcher.is_error():
            raise _refusal(spec, reason_of(matcher.get_error()))
        first[self.vocabulary.end_token_ids] = False
        if not first.any():
            raise _refusal(spec, "it matches nothing but the empty text")
        return Grammar(matcher, self.vocabulary)


def _refusal(spec: ConstraintSpec, message: str) -> InvalidSetting:
    found = _REASON.search(message)
    reason = found[1] if found else _JSON_PLACE.sub("", message).strip().partition("\n")[0]
    return InvalidSetting(
        f"a {spec.kind} constraint that cannot be used ({reason[:_REASON_LETTERS]})",
        _EXPECTED[spec.kind],
        "correct it, or ask for less",
    )


_EXPECTED = {
    "json": "a JSON schema of keywords that can be enforced",
    "json_object": "any JSON object",
    "regex": "a regex without look-around and back-references",
    "choice": "strings that the model's tokens can spell",
    "grammar": "a Lark grammar with a rule start, or a GBNF grammar with a rule root",
}

_STARTING = threading.Lock()


def _on_a_deep_stack(work: Callable[[], _Result]) -> _Result:
    with ThreadPoolExecutor(1) as pool:
        # The size holds for whichever thread starts next.
        with _STARTING:
            before = threading.stack_size(STACK_BYTES)
            try:
                future = pool.submit(work)
            finally:
                threading.stack_size(before)
        return future.result()
