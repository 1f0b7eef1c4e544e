"""A draft model kept level with the sequences that it drafts for."""

from collections.abc import Collection
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray

from outrider.engine.caching.cache import BlockCache
from outrider.engine.drafting.own_model.progress import Progress
from outrider.engine.drafting.shared_vocabulary import SharedVocabulary
from outrider.engine.models.base import Rows, TargetModel
from outrider.engine.sampling import Sampling
from outrider.engine.sequence import Sequence


class Turn(NamedTuple):
    """A sequence that gets a draft of `length` tokens, 1 or more, and its `row` in the batch."""

    row: int
    length: int
    progress: Progress

    @property
    def sampling(self) -> Sampling:
        """That of the sequence."""
        return self.progress.sequence.sampling


class OwnModel:
    """A second model with a cache of its own, which knows how far it has come with each sequence.

    It computes at most `max_rows` known tokens at a time. The blocks of a sequence that takes no
    part, as one that was preempted, are given to others when there are no more. With a `vocabulary`
    its tokens are others than the target's, and logits are of the S shared ones alone; otherwise
    they are of all V. `mask_token_id` is one of its own tokens, for those drafted in parallel.
    """

    def __init__(
        self,
        model: TargetModel,
        *,
        max_rows: int,
        prefix_caching: bool = False,
        vocabulary: SharedVocabulary | None = None,
        mask_token_id: int | None = None,
    ) -> None:
        self.model = model
        self._mask_token_id = mask_token_id
        self._vocabulary = vocabulary
        self.cache = BlockCache(model.num_blocks, prefix_caching=prefix_caching)
        self._max_rows = max_rows
        self._progress: dict[Sequence, Progress] = {}  # by the last time that they took part

    def turns(self, batch: list[Sequence], limit: NDArray[np.int64]) -> list[Turn]:
        """Return the turns of those in `batch` that may have a draft and find room in the cache.

        No draft is longer than `limit` [B], nor than the model's own length allows.
        """
        fits = [
            min(most, self.model.max_length - len(sequence) + 1)
            for sequence, most in zip(batch, limit.tolist(), strict=True)
        ]
        turns = [
            Turn(row, length, self._settled(sequence))
            for row, (sequence, length) in enumerate(zip(batch, fits, strict=True))
            if length > 0
        ]
        taking_part = {id(turn.progress) for turn in turns}
        return [turn for turn in turns if self._find_room(turn, taking_part)]

    def read(self, turns: list[Turn], *, masks: bool = False) -> tuple[list[Turn], torch.Tensor]:
        """Compute what is missing of the known tokens, of those that miss least first.

        Return the turns that are level now, with the logits [n, S] of the last token of each. With
        `masks` so many mask tokens follow as make `length` rows with the last token, and the logits
        are of all these rows, turn by turn. What exceeds `max_rows` waits for the next call.
        """
        level: list[Turn] = []
        rows = _RowsToBe()
        left = self._max_rows
        for turn in sorted(turns, key=lambda each: each.progress.missing_tokens):
            progress = turn.progress
            start, count = progress.computed_tokens, min(progress.missing_tokens, left)
            tokens = self._in_own(progress.token_ids[start : start + count])
            left -= count
            if start + count == len(progress):
                level.append(turn)
                filling = self._masks(turn.length - 1) if masks else []
                rows.add(progress, start, [*tokens, *filling], wanted=len(filling) + 1)
            elif count:
                rows.add(progress, start, tokens, wanted=0)
            progress.computed_tokens += count
        logits = self._forward(rows)
        for turn in turns:
            self.cache.keep(turn.progress)
        return level, logits

    def go_on(self, turns: list[Turn], tokens: list[int]) -> torch.Tensor:
        """Compute the token drafted to each of `turns`; return the logits [n, S] after it."""
        rows = _RowsToBe()
        own_tokens = self._in_own(np.array(tokens, np.int32))
        for turn, token, own_token in zip(turns, tokens, own_tokens, strict=True):
            progress = turn.progress
            at = progress.computed_tokens + len(progress.guessed)
            rows.add(progress, at, [own_token], wanted=1)
            progress.guessed.append(token)
        return self._forward(rows)

    def forget(self, sequence: Sequence) -> None:
        """Free what is held for `sequence`."""
        progress = self._progress.pop(sequence, None)
        if progress is not None:
            self.cache.release(progress)

    def in_target(self, tokens: NDArray[np.int64]) -> list[int]:
        """Return as the target's tokens those that were chosen from S logits, int64 [n]."""
        known = tokens if self._vocabulary is None else self._vocabulary.target_ids[tokens]
        found: list[int] = known.tolist()
        return found

    def _masks(self, count: int) -> list[int]:
        assert self._mask_token_id is not None, "a model that was trained to fill in masks"
        return [self._mask_token_id] * count

    def _in_own(self, tokens: NDArray[np.int32]) -> list[int]:
        """The target's `tokens` [n] as the model reads them."""
        known = tokens if self._vocabulary is None else self._vocabulary.to_draft[tokens]
        found: list[int] = known.tolist()
        return found

    def _forward(self, rows: "_RowsToBe") -> torch.Tensor:
        if not rows.token_ids:
            return torch.empty(0, self.model.config.vocab_size)
        logits = self.model.forward(rows.finished())
        if self._vocabulary is None:
            return logits
        return logits[:, self._vocabulary.draft_ids.to(logits.device)]

    def _settled(self, sequence: Sequence) -> Progress:
        progress = self._progress.pop(sequence, None)
        if progress is None:
            progress = Progress(sequence)
            self.cache.begin(progress)
        progress.settle()
        self._progress[sequence] = progress
        return progress

    def _find_room(self, turn: Turn, taking_part: Collection[int]) -> bool:
        # The last drafted token is computed by nobody.
        while not self.cache.grow(turn.progress, len(turn.progress) + turn.length - 1):
            oldest = next(iter(self._progress.values()))
            if id(oldest) in taking_part:
                return False
            self.forget(oldest.sequence)
        return True


@dataclass(slots=True)
class _RowsToBe:
    """The rows of a pass while they are put together."""

    token_ids: list[int] = field(default_factory=list)
    positions: list[int] = field(default_factory=list)
    sequences: list[int] = field(default_factory=list)
    tables: list[list[int]] = field(default_factory=list)
    wanted: list[int] = field(default_factory=list)

    def add(self, progress: Progress, start: int, tokens: list[int], *, wanted: int) -> None:
        """Add `tokens` from position `start` on; the logits of the last `wanted` are needed."""
        self.positions += range(start, start + len(tokens))
        self.sequences += [len(self.tables)] * len(tokens)
        self.token_ids += tokens
        self.tables.append(progress.block_table)
        end = len(self.token_ids)
        self.wanted += range(end - wanted, end)

    def finished(self) -> Rows:
        """Return them as a model takes them."""
        return Rows(self.token_ids, self.positions, self.sequences, self.tables, self.wanted)
