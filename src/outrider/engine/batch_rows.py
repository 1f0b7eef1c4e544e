"""The rows of one step, and which of their logits are whose."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple, Self

import torch

from outrider.engine.drafting.draft import Draft
from outrider.engine.models.base import Rows
from outrider.engine.scheduling.scheduler import Piece
from outrider.engine.sequence import Sequence


class PromptLogits(NamedTuple):
    """Rows [start : end] of a step's logits tell of `following`, the prompt tokens after them."""

    sequence: Sequence
    start: int
    end: int
    following: list[int]


@dataclass(frozen=True, slots=True)
class BatchRows:
    """What the target computes: known tokens and after them the draft, sequence by sequence.

    Of the logits of `rows`, those at `sampled` choose tokens; None says that all of them do.
    """

    rows: Rows
    prompt_logits: tuple[PromptLogits, ...]
    sampled: tuple[int, ...] | None

    @classmethod
    def of(cls, pieces: list[Piece], draft: Draft) -> Self:
        """Lay out `pieces`; `draft` is that of the complete ones among them."""
        token_ids: list[int] = []
        positions: list[int] = []
        sequences: list[int] = []
        wanted: list[int] = []
        sampled: list[int] = []
        prompt_logits: list[PromptLogits] = []
        drafts = iter(zip(draft.tokens.tolist(), draft.lengths.tolist(), strict=True))
        for index, piece in enumerate(pieces):
            start = piece.sequence.computed_tokens
            tokens = piece.sequence.token_ids[start : start + piece.tokens].tolist()
            first = len(token_ids)
            if piece.sequence.asks_prompt_logprobs and (following := _following(piece)):
                at = len(wanted)
                prompt_logits.append(
                    PromptLogits(piece.sequence, at, at + len(following), following)
                )
                wanted += range(first, first + len(following))
            if piece.completes:
                drafted, length = next(drafts)
                tokens += drafted[:length]
                sampled += range(len(wanted), len(wanted) + length + 1)
                last = first + piece.tokens - 1
                wanted += range(last, last + length + 1)
            token_ids += tokens
            positions += range(start, start + len(tokens))
            sequences += [index] * len(tokens)
        tables = [piece.sequence.block_table for piece in pieces]
        return cls(
            Rows(token_ids, positions, sequences, tables, wanted),
            tuple(prompt_logits),
            tuple(sampled) if prompt_logits else None,
        )

    def choosing(self, logits: torch.Tensor) -> torch.Tensor:
        """Return those of the step's logits that choose tokens, all of them uncopied if they do."""
        return logits if self.sampled is None else logits[list(self.sampled)]

    def telling(self, logits: torch.Tensor) -> Iterator[tuple[Sequence, torch.Tensor, list[int]]]:
        """Yield the logits [n, V] that tell of the n prompt tokens that follow them."""
        for sequence, start, end, following in self.prompt_logits:
            yield sequence, logits[start:end], following


def _following(piece: Piece) -> list[int]:
    """The prompt tokens after each of the piece's own; the last of a prompt has none."""
    start = piece.sequence.computed_tokens + 1
    prompt = piece.sequence.token_ids[: piece.sequence.prompt_tokens]
    following: list[int] = prompt[start : start + piece.tokens].tolist()
    return following
