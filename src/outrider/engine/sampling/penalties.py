"""Repetition, presence and frequency penalties."""

import numpy as np
import torch

from outrider.engine.sampling.history import History
from outrider.engine.sampling.parameters import SamplingParameters
from outrider.engine.sampling.token_counts import TokenCounts


class Penalties:
    """Makes tokens that came before less likely, in vLLM's order.

    The repetition penalty looks at prompt and output, the other two at the output alone.
    """

    def __init__(self, parameters: SamplingParameters) -> None:
        self._repetition = parameters.repetition_penalty
        self._presence = parameters.presence_penalty
        self._frequency = parameters.frequency_penalty
        self._counts = TokenCounts()
        self._saw_prompt = self._repetition == 1
        self._counted_tokens = 0

    def apply(self, rows: torch.Tensor, history: History) -> None:
        """Penalise in each row the tokens that come before it, drafted ones too."""
        self._catch_up(history)
        ids, counts, came = (
            torch.from_numpy(each).to(rows.device)
            for each in self._counts.with_draft(history.drafted.tolist())
        )
        logits = rows.index_select(1, ids)
        if self._repetition != 1:
            repeated = torch.where(logits > 0, logits / self._repetition, logits * self._repetition)
            logits = torch.where(came, repeated, logits)
        if self._frequency:
            logits -= self._frequency * counts
        if self._presence:
            logits -= self._presence * (counts > 0)
        rows.index_copy_(1, ids, logits)

    def _catch_up(self, history: History) -> None:
        if not self._saw_prompt:
            self._counts.see(np.unique(history.prompt).tolist())
            self._saw_prompt = True
        self._counts.add(history.output[self._counted_tokens :].tolist())
        self._counted_tokens = len(history.output)
