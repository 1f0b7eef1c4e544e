"""What two tokenizers have in common, so that a model of the one can draft for one of the other.

Token-level intersection (TLI; Timor et al. 2025, arXiv 2502.05202), by vLLM's rules: a token is
shared if both vocabularies have it once the mark that each has for a space is made a real one. The
text is not tokenised again, so where the two cut it differently the draft model reads tokens that
it would not have written. That costs acceptance and never changes the output.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Self

import numpy as np
import torch
from numpy.typing import NDArray

from outrider.engine.tokenizer import Tokenizer
from outrider.errors import InvalidSetting

SPACE_MARKS = ("Ġ", "▁")
"""Those of byte-level BPE and of SentencePiece."""


@dataclass(frozen=True, slots=True)
class TokenTable:
    """The tokens of a model with ids 0 to `size` - 1, `ids` by their text with plain spaces.

    Several ids may have the same text; `ids` has them in ascending order. `special` has the text of
    tokens by their role: bos, eos, unk or pad, where there is one.
    """

    name: str
    size: int
    ids: Mapping[str, tuple[int, ...]]
    special: Mapping[str, tuple[str, int]]

    @classmethod
    def of(cls, name: str, tokenizer: Tokenizer, size: int) -> Self:
        """Take the tokens of `tokenizer` that the model called `name` has an id for."""
        vocabulary = tokenizer.vocabulary
        mark = _space_mark(tokenizer, vocabulary)
        ids: dict[str, tuple[int, ...]] = {}
        for text, token in sorted(vocabulary.items(), key=lambda item: item[1]):
            if token < size:
                plain = text.replace(mark, " ")
                ids[plain] = (*ids.get(plain, ()), token)
        special = {
            role: (text, token)
            for role, (text, token) in tokenizer.special_tokens.items()
            if token < size
        }
        return cls(name, size, MappingProxyType(ids), MappingProxyType(special))


@dataclass(frozen=True, slots=True, eq=False)
class SharedVocabulary:
    """From a target's tokens to a draft model's, and from those that both have back.

    `to_draft` int64 [V] has for each of the target's ids the draft model's, or the one that stands
    for all that it does not know. `draft_ids` int64 [S] are those of its ids, ascending, that the
    target has too, and `target_ids` int64 [S] what they are there. `readable` counts the target's
    ids that are shared.
    """

    to_draft: NDArray[np.int64]
    draft_ids: torch.Tensor
    target_ids: NDArray[np.int64]
    readable: int

    @classmethod
    def of(cls, target: TokenTable, draft: TokenTable) -> Self:
        """Find what both have; InvalidSetting if a token cannot even be read as unknown."""
        unknown = draft.special.get("unk") or draft.special.get("eos")
        if unknown is None:
            raise InvalidSetting(
                f"VocabMapping: {draft.name} has neither unk_token_id nor eos_token_id",
                "a token to read those as that it does not have",
                "take another draft model",
            )
        to_draft = np.full(target.size, unknown[1], np.int64)
        to_target = np.full(draft.size, -1, np.int64)
        readable = 0
        for text in target.ids.keys() & draft.ids.keys():
            of_target, of_draft = target.ids[text], draft.ids[text]
            readable += len(of_target)
            to_draft[list(of_target)] = of_draft[0]
            to_target[list(of_draft)] = of_target[0]
        shared = np.flatnonzero(to_target >= 0)
        if not len(shared):
            raise InvalidSetting(
                f"{draft.name} and {target.name} without a single token in common",
                "a draft model of which the target knows some tokens",
                "take another draft model",
            )
        return cls(to_draft, torch.from_numpy(shared), to_target[shared], readable)


def _space_mark(tokenizer: Tokenizer, vocabulary: Mapping[str, int]) -> str:
    """The mark that begins the token of a space and a letter, else the known one that is in use."""
    written = tokenizer.encode(" a")
    first = tokenizer.token(written[0]) if written else None
    if first and first[1:] in ("", "a") and not (first[0].isascii() and first[0].isalnum()):
        return first[0]
    used = (mark for mark in SPACE_MARKS if any(text.startswith(mark) for text in vocabulary))
    return next(used, " ")
