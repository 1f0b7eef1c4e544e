"""The step loop: draft, run the target once, verify, keep what was accepted, report."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from outrider.engine.drafting.base import Drafter
from outrider.engine.drafting.draft import Draft
from outrider.engine.models.base import Rows, TargetModel
from outrider.engine.recorder import Recorder
from outrider.engine.sequence import Sequence
from outrider.engine.verification.base import Verifier
from outrider.records.request import FinishReason, StepRecord


@dataclass(frozen=True, slots=True)
class StepLoop:
    """Advances requests of one target with one drafter and one verifier.

    `k` is the maximum draft length; `stop_ids` end a request and are part of its output; `clock`
    gives seconds. Plain decoding is the same loop with empty drafts.
    """

    model: TargetModel
    drafter: Drafter
    verifier: Verifier
    recorder: Recorder
    k: int
    stop_ids: frozenset[int]
    clock: Callable[[], float]

    def prefill(self, sequence: Sequence) -> float:
        """Runs the prompt, appends the first token, returns the seconds that it took."""
        start = self.clock()
        tokens = sequence.token_ids.tolist()
        rows = Rows(tokens, range(len(tokens)), [sequence.slot] * len(tokens), [len(tokens) - 1])
        logits = self.model.forward(rows)
        verdict = self.verifier.verify(logits, Draft.empty(1, 0), [sequence.sampling])
        sequence.append(verdict.emitted[0])
        return self.clock() - start

    def step(self, batch: list[Sequence]) -> None:
        """One decode step of every sequence in `batch`, none of them finished."""
        start = self.clock()
        limit = np.array([min(self.k, each.room_tokens - 1) for each in batch], np.int64)
        draft = self.drafter.propose(batch, limit)
        drafted_at = self.clock()
        logits = self.model.forward(_rows(batch, draft))
        verdict = self.verifier.verify(logits, draft, [each.sampling for each in batch])
        verified_at = self.clock()
        emitted = [
            self._keep(sequence, tokens.tolist())
            for sequence, tokens in zip(batch, verdict.emitted, strict=True)
        ]
        self.drafter.observe(batch, verdict)
        end = self.clock()
        for sequence, drafted, accepted, kept in zip(
            batch, draft.lengths.tolist(), verdict.accepted.tolist(), emitted, strict=True
        ):
            record = StepRecord(
                drafted=drafted,
                accepted=accepted,
                emitted=kept,
                draft_s=drafted_at - start,
                verify_s=verified_at - drafted_at,
                step_s=end - start,
            )
            self.recorder.step(sequence, record)

    def finished(self, sequence: Sequence) -> FinishReason | None:
        """Why `sequence` has ended, or None while it runs."""
        if int(sequence.token_ids[-1]) in self.stop_ids:
            return FinishReason.STOP
        return None if sequence.room_tokens else FinishReason.LENGTH

    def _keep(self, sequence: Sequence, tokens: list[int]) -> int:
        """Appends the run up to a stop token or the last that fits; returns how many those are."""
        kept = min(len(tokens), sequence.room_tokens)
        for i, token in enumerate(tokens[:kept]):
            if token in self.stop_ids:
                kept = i + 1
                break
        sequence.append(tokens[:kept])
        return kept


def _rows(batch: list[Sequence], draft: Draft) -> Rows:
    """Each sequence's last token and its draft, at the positions where they stand."""
    token_ids: list[int] = []
    positions: list[int] = []
    slots: list[int] = []
    for sequence, drafted, length in zip(
        batch, draft.tokens.tolist(), draft.lengths.tolist(), strict=True
    ):
        last = len(sequence) - 1
        token_ids += [int(sequence.token_ids[last]), *drafted[:length]]
        positions += range(last, last + length + 1)
        slots += [sequence.slot] * (length + 1)
    return Rows(token_ids, positions, slots, range(len(token_ids)))
