"""One step: draft, run the target once, verify, keep what was accepted, report."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray

from outrider.engine.adaptive.verification import AdaptiveVerification
from outrider.engine.batch_rows import BatchRows
from outrider.engine.constraints.step import ConstrainedStep
from outrider.engine.delivery import Failures, deliver, tell_prompt_logprobs
from outrider.engine.drafting.base import Drafter
from outrider.engine.drafting.batch_size_ranges import BatchSizeRanges
from outrider.engine.drafting.checking import check
from outrider.engine.drafting.draft import Draft
from outrider.engine.models.base import TargetModel
from outrider.engine.recorder import Recorder
from outrider.engine.sampling.processing import process
from outrider.engine.scheduling.scheduler import Piece
from outrider.engine.sequence import Sequence
from outrider.engine.update import Update
from outrider.engine.verification.base import Verdict, Verifier
from outrider.engine.verification.broken_logits import take_out_broken_rows
from outrider.records.request import StepRecord


@dataclass(frozen=True, slots=True)
class StepLoop:
    """Advances requests of one target with one drafter and one verifier.

    `k` is the maximum draft length, less where `k_by_batch_size` says so; with `adaptive` only what
    pays of a draft is verified. `clock` gives seconds. Plain decoding is the same loop with empty
    drafts.
    """

    model: TargetModel
    drafter: Drafter
    verifier: Verifier
    recorder: Recorder
    k: int
    clock: Callable[[], float]
    k_by_batch_size: BatchSizeRanges | None = None
    adaptive: AdaptiveVerification | None = None

    def step(self, pieces: list[Piece]) -> list[Update]:
        """Do what `pieces` say; return the news of the sequences that are complete."""
        start = self.clock()
        batch = [piece.sequence for piece in pieces if piece.completes]
        limit = self._draft_limit(pieces)
        proposed, failures = self._propose(batch, limit)
        drafted_at = self.clock()
        constrained = ConstrainedStep.of(batch, proposed, self.model.config.vocab_size)
        draft = constrained.draft
        if self.adaptive is not None and limit is not None and limit.any():
            plain_rows = sum(piece.tokens for piece in pieces)
            spent_s = drafted_at - start
            draft = self.adaptive.trim(batch, draft, plain_rows=plain_rows, spent_s=spent_s)
        layout = BatchRows.of(pieces, draft)
        logits = self.model.forward(layout.rows)
        for sequence, rows, following in layout.telling(logits):
            tell_prompt_logprobs(sequence, rows, following)
        for piece in pieces:
            piece.sequence.computed_tokens += piece.tokens
        if not batch:
            self._record_prefills(pieces, self.clock() - start)
            return []
        choosing = layout.choosing(logits)
        failures = {**constrained.failures, **failures}
        verdict = self._judge(choosing, constrained, draft, batch, failures)
        verified_at = self.clock()
        updates = deliver(batch, verdict, choosing, draft, failures)
        self.drafter.observe(batch, verdict)
        if self.adaptive is not None:
            self.adaptive.learn(batch, draft, verdict.accepted)
            if all(piece.tokens == 1 for piece in pieces):  # rows of a prompt cost less
                self.adaptive.took(batch, len(layout.rows.token_ids), verified_at - drafted_at)
        end = self.clock()
        self._record_prefills(pieces, end - start)
        decoding = [not piece.prefill for piece in pieces if piece.completes]
        invalidated = proposed.lengths - constrained.draft.lengths
        trimmed = constrained.draft.lengths - draft.lengths
        for row in np.flatnonzero(decoding).tolist():
            record = StepRecord(
                drafted=int(draft.lengths[row]),
                accepted=int(verdict.accepted[row]),
                emitted=updates[row].tokens,
                draft_s=drafted_at - start,
                verify_s=verified_at - drafted_at,
                step_s=end - start,
                trimmed=int(trimmed[row]),
                invalidated=int(invalidated[row]),
            )
            self.recorder.step(batch[row], record)
        return updates

    def _propose(
        self, batch: list[Sequence], limit: NDArray[np.int64] | None
    ) -> tuple[Draft, Failures]:
        """Draft for every complete sequence; one whose draft is nonsense fails, without a draft."""
        if limit is None:
            return Draft.empty(len(batch), self.k), {}
        draft = self.drafter.propose(batch, limit)
        failures = dict(check(draft, limit, self.model.config.vocab_size))
        if len(failures) == len(batch):
            return Draft.empty(len(batch), self.k), failures
        return (draft.without(failures) if failures else draft), failures

    def _draft_limit(self, pieces: list[Piece]) -> NDArray[np.int64] | None:
        """The most tokens that each complete sequence may have drafted, [B].

        None where the drafter is not even to look at them.
        """
        limits = [piece.draft_limit for piece in pieces if piece.completes]
        if not limits:
            return None
        most = max(limits)
        if self.k_by_batch_size is not None:
            most = min(most, self.k_by_batch_size.k_for(len(pieces)))
        if self.adaptive is not None and most:
            plain_rows = sum(piece.tokens for piece in pieces)
            most = self.adaptive.draft_length(most, plain_rows=plain_rows)
            if not most:
                return None
        return np.array([min(limit, most) for limit in limits], np.int64)

    def _judge(
        self,
        logits: torch.Tensor,
        constrained: ConstrainedStep,
        draft: Draft,
        batch: list[Sequence],
        failures: Failures,
    ) -> Verdict:
        """Verify `draft`; a sequence fails where a row that it needs has no token to choose."""
        processed = constrained.mask(process(logits, draft, batch), draft)
        broken = take_out_broken_rows(processed, draft)
        verdict = self.verifier.verify(processed, draft, [each.sampling for each in batch])
        failures |= {
            each.request: each.reason
            for each in broken
            # Rows after the first rejected token decide nothing.
            if each.row <= verdict.accepted[each.request] and each.request not in failures
        }
        return verdict

    def _record_prefills(self, pieces: list[Piece], step_s: float) -> None:
        for piece in pieces:
            if piece.prefill:
                self.recorder.prefill(piece.sequence, step_s)
