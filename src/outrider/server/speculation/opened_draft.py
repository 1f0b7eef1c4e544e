"""A draft checkpoint that was found and looked into, before any weights are loaded."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Self

from outrider.engine.drafting.own_model.mask_token import mask_token_id
from outrider.engine.drafting.own_model.model import OwnModel
from outrider.engine.drafting.pairing import (
    check_sizes,
    told_of_same_ids,
    told_of_shared,
    told_of_special,
)
from outrider.engine.drafting.shared_vocabulary import SharedVocabulary, TokenTable
from outrider.engine.models.base import TargetModel
from outrider.engine.models.config import DecoderConfig
from outrider.engine.models.registry import load_model
from outrider.engine.models.settings import ModelSettings
from outrider.engine.models.source import open_weights
from outrider.engine.tokenizer import Tokenizer
from outrider.errors import InvalidSetting
from outrider.server.speculation.methods.draft_model import DraftModelMethod


@dataclass(frozen=True, slots=True)
class ModelToPair:
    """One side of a pair: what a model is called, where it is, and what reads its texts."""

    name: str
    path: Path
    tokenizer: Tokenizer


@dataclass(frozen=True, slots=True, eq=False)
class OpenedDraft:
    """A draft model that goes with its target: where it is, and how the two understand each other.

    `max_length` is how many tokens it reads at most.
    """

    path: Path
    config: DecoderConfig
    max_length: int
    vocabulary: SharedVocabulary | None
    mask_token_id: int | None

    @classmethod
    def of(
        cls,
        method: DraftModelMethod,
        target: ModelToPair,
        draft: ModelToPair,
        *,
        say: Callable[[str], None],
    ) -> Self:
        """Look into both; `say` gets a line for whatever the user should know of the pair.

        Raises InvalidSetting for two that do not go together, and what reading a model raises.
        """
        config, target_config = (open_weights(each.path).config for each in (draft, target))
        tables = (
            TokenTable.of(target.name, target.tokenizer, target_config.vocab_size),
            TokenTable.of(draft.name, draft.tokenizer, config.vocab_size),
        )
        for line in told_of_special(*tables):
            say(line)
        vocabulary = None
        if method.use_heterogeneous_vocab:
            vocabulary = SharedVocabulary.of(*tables)
            told: Iterator[str] = told_of_shared(*tables, vocabulary)
        else:
            check_sizes(*tables)
            told = told_of_same_ids(*tables)
        for line in told:
            say(line)
        max_length = _max_length(method, config, target_config)
        if max_length < target_config.max_positions:
            say(f"the draft model reads {max_length:,} tokens at most; there drafts end")
        return cls(
            draft.path,
            config,
            max_length,
            vocabulary,
            mask_token_id(draft.path, config.vocab_size) if method.parallel_drafting else None,
        )

    def load(
        self, settings: ModelSettings, target: TargetModel, *, max_rows: int, prefix_caching: bool
    ) -> OwnModel:
        """Load the weights, to run by `settings` with as many blocks as `target` has."""
        return OwnModel(
            load_model(
                self.path,
                replace(
                    settings,
                    num_blocks=target.num_blocks,
                    max_length=min(self.max_length, target.max_length),
                ),
            ),
            max_rows=max_rows,
            prefix_caching=prefix_caching,
            vocabulary=self.vocabulary,
            mask_token_id=self.mask_token_id,
        )


def _max_length(method: DraftModelMethod, draft: DecoderConfig, target: DecoderConfig) -> int:
    most = min(draft.max_positions, target.max_positions)
    if method.max_model_len is None:
        return draft.max_positions
    if method.max_model_len > most:
        raise InvalidSetting(
            f"max_model_len {method.max_model_len} of the draft model",
            f"at most the {most} positions that both models have",
            "lower it, or leave it out",
        )
    return method.max_model_len
