"""A model's tokens as a grammar sees them: bytes, and which of them end an answer."""

from collections.abc import Collection
from dataclasses import dataclass
from typing import Self

import numpy as np
from llguidance import LLMatcher, LLTokenizer
from numpy.typing import NDArray

from outrider.engine.tokenizer import Tokenizer
from outrider.errors import UnsupportedModel

_WORD_BITS = 32


@dataclass(frozen=True, slots=True, eq=False)
class GrammarVocabulary:
    """Made once per model, in about a third of a second for 50,000 tokens.

    `size` is the target's V, which may be more or fewer than the tokenizer's. `end_token_ids`
    int64 are those that end an answer; a grammar allows them where it may end.
    """

    tokens: LLTokenizer
    size: int
    end_token_ids: NDArray[np.int64]

    @classmethod
    def of(cls, tokenizer: Tokenizer, *, size: int, end_token_ids: Collection[int]) -> Self:
        """Take the tokens of `tokenizer` for a target with ids 0 to `size` - 1.

        Raises `UnsupportedModel` for a tokenizer whose tokens have no bytes of their own, or where
        no token ends an answer.
        """
        known = tokenizer.vocabulary_tokens
        ends = sorted(token for token in end_token_ids if 0 <= token < min(size, known))
        if not ends:
            raise UnsupportedModel(
                "a model without a token that ends an answer",
                "one, for a grammar to end with",
                "ask this model for plain text",
            )
        try:
            tokens = LLTokenizer(tokenizer.to_json(), n_vocab=max(size, known), eos_token=ends)
        except Exception as error:
            raise UnsupportedModel(
                f"a tokenizer that no grammar can follow ({' '.join(str(error).split())[:120]})",
                "tokens that stand for bytes",
                "ask this model for plain text",
            ) from error
        return cls(tokens, size, np.array(ends, np.int64))

    def allowed_by(self, matcher: LLMatcher) -> NDArray[np.bool_]:
        """Which tokens [V] may come next, the ends too where it may end; look for an error then."""
        words = np.zeros(-(-self.tokens.vocab_size // _WORD_BITS), np.uint32)
        matcher.unsafe_compute_mask_ptr(words.ctypes.data, words.nbytes)
        bits = np.unpackbits(words.view(np.uint8), count=self.size, bitorder="little")
        return bits.view(np.bool_)
