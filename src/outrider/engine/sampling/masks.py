"""Rules that forbid or favour single tokens."""

import math
from collections.abc import Iterable, Mapping

import torch

from outrider.engine.sampling.history import History


class AllowedTokens:
    """Only some tokens may be chosen."""

    def __init__(self, token_ids: Iterable[int]) -> None:
        self._allowed = _ids(token_ids)

    def apply(self, rows: torch.Tensor, history: History) -> None:  # noqa: ARG002  a Rule
        """Set the logits of all other tokens to minus infinity."""
        allowed = self._allowed.to(rows.device)
        kept = rows[:, allowed]
        rows.fill_(-math.inf).index_copy_(1, allowed, kept)


class MinTokens:
    """Nothing that ends the output may be chosen before it has `min_tokens` tokens."""

    def __init__(self, min_tokens: int, end_token_ids: Iterable[int]) -> None:
        self._min_tokens = min_tokens
        self._end = _ids(end_token_ids)

    def apply(self, rows: torch.Tensor, history: History) -> None:
        """Set the logits of end tokens to minus infinity in the rows that come too early."""
        too_early = max(self._min_tokens - len(history.output), 0)
        rows[:too_early].index_fill_(1, self._end.to(rows.device), -math.inf)


class LogitBias:
    """Something is added to the logits of single tokens."""

    def __init__(self, bias: Mapping[int, float]) -> None:
        self._tokens = torch.tensor(list(bias), dtype=torch.int64)
        self._bias = torch.tensor(list(bias.values()), dtype=torch.float32)

    def apply(self, rows: torch.Tensor, history: History) -> None:  # noqa: ARG002  a Rule
        """Add the biases."""
        added = self._bias.to(rows.device).expand(len(rows), -1)
        rows.index_add_(1, self._tokens.to(rows.device), added)


def _ids(token_ids: Iterable[int]) -> torch.Tensor:
    return torch.tensor(sorted(set(token_ids)), dtype=torch.int64)
