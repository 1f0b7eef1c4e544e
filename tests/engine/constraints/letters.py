"""A vocabulary of letters and a few short words, and a random target that writes with it."""

from collections.abc import Collection
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from zlib import crc32

import numpy as np
import torch
from tests.engine.models.configs import config_of
from tokenizers import Tokenizer as Backend
from tokenizers import decoders, models, pre_tokenizers

from outrider.engine.constraints.compiler import ConstraintCompiler
from outrider.engine.constraints.grammar import GrammarConstraint
from outrider.engine.constraints.spec import ConstraintSpec
from outrider.engine.constraints.vocabulary import GrammarVocabulary
from outrider.engine.models.base import BLOCK_TOKENS, Rows
from outrider.engine.tokenizer import Tokenizer

WORDS = (
    *'abcdefglnorstuxy0123456789{}[]()",:-.+ \n',
    *("true", "false", "null", '":', '{"', '"}', '", "', ", ", "ab", "ba", "red", "abc", "é"),
)
"""The tokens, in the order of their ids; the end of an answer comes after them."""
END = len(WORDS)
PADDING = 3
"""As many ids are in the target's vocabulary and not in the tokenizer's."""
SIZE = END + 1 + PADDING


def spelled(text: str) -> str:
    """`text` in the letters that the byte-level alphabet has for its bytes."""
    pieces = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    return "".join(piece for piece, _ in pieces.pre_tokenize_str(text))


@cache
def tokenizer_of(words: tuple[str, ...]) -> Tokenizer:
    """A tokenizer with the tokens `words` and after them "<end>"."""
    from transformers import PreTrainedTokenizerFast  # noqa: PLC0415  takes seconds

    backend = Backend(models.BPE(vocab={spelled(w): i for i, w in enumerate(words)}, merges=[]))
    backend.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    backend.decoder = decoders.ByteLevel()
    backend.add_special_tokens(["<end>"])
    with TemporaryDirectory() as folder:
        special = {"eos_token": "<end>"}
        PreTrainedTokenizerFast(tokenizer_object=backend, **special).save_pretrained(folder)
        return Tokenizer(Path(folder))


@cache
def vocabulary_of(
    words: tuple[str, ...] = WORDS, size: int = SIZE, ends: Collection[int] = (END,)
) -> GrammarVocabulary:
    return GrammarVocabulary.of(tokenizer_of(words), size=size, end_token_ids=ends)


@cache
def compiler() -> ConstraintCompiler:
    return ConstraintCompiler(vocabulary_of())


def begun(spec: ConstraintSpec, *, ignore_eos: bool = False) -> GrammarConstraint:
    """A constraint on a new output over `WORDS`."""
    return compiler().compile(spec).start(ignore_eos=ignore_eos)


def text_of(tokens: Collection[int]) -> str:
    """The output's text, without the end."""
    return "".join(WORDS[token] for token in tokens if token != END)


def ids_of(text: str) -> list[int]:
    """The letters of `text`, one token each."""
    return [WORDS.index(letter) for letter in text]


class LetterModel:
    """A target of random logits that depend on the last two tokens, as its cache holds them."""

    logit_tolerance = 0.0

    def __init__(self, num_blocks: int = 300, max_length: int = 1_000) -> None:
        self.config = config_of(vocab_size=SIZE)
        self.num_blocks = num_blocks
        self.max_length = max_length
        self.cache = np.full((num_blocks, BLOCK_TOKENS), -1)

    def forward(self, rows: Rows) -> torch.Tensor:
        wanted = set(rows.wanted)
        found = []
        for at, (token, position, index) in enumerate(
            zip(rows.token_ids, rows.positions, rows.sequences, strict=True)
        ):
            table = list(rows.block_tables[index])
            self.cache[table[position // BLOCK_TOKENS], position % BLOCK_TOKENS] = token
            if at in wanted:
                history = self.cache[table].ravel()[max(position - 1, 0) : position + 1]
                assert (history >= 0).all(), "a token that was never computed"
                found.append(logits_after(tuple(history.tolist())))
        return torch.stack(found) if found else torch.empty(0, SIZE)


@cache
def logits_after(history: tuple[int, ...]) -> torch.Tensor:
    """What the model says after these last tokens."""
    seed = crc32(np.array(history, np.int32).tobytes())
    return 2.5 * torch.randn(SIZE, generator=torch.Generator().manual_seed(seed))
