"""Gives requests the tokens that a step has chosen for them."""

from collections.abc import Mapping

import torch

from outrider.engine.drafting.draft import Draft
from outrider.engine.sampling.logprobs import token_logprobs
from outrider.engine.sequence import Sequence
from outrider.engine.update import Update
from outrider.engine.verification.base import Verdict
from outrider.records.request import FinishReason

Failures = dict[int, str]
"""Which sequences of a batch cannot go on, and why."""


def deliver(
    batch: list[Sequence],
    verdict: Verdict,
    logits: torch.Tensor,
    draft: Draft,
    failures: Mapping[int, str],
) -> list[Update]:
    """Append what was emitted, up to where an output ends, and return the news of each sequence.

    `logits` [sum(lengths + 1), V] are the target's own, before any rule was applied to them.
    """
    rows = (draft.lengths + 1).cumsum() - draft.lengths - 1
    return [
        Update(sequence, finish_reason=FinishReason.ERROR, failure=failures[row])
        if row in failures
        else _extend(sequence, verdict.emitted[row].tolist(), logits, first)
        for row, (sequence, first) in enumerate(zip(batch, rows.tolist(), strict=True))
    ]


def tell_prompt_logprobs(sequence: Sequence, logits: torch.Tensor, following: list[int]) -> None:
    """Keep what `logits` [n, V] say of the n prompt tokens that follow them.

    Comes before the step's own tokens count as computed.
    """
    count = sequence.sampling.parameters.prompt_logprobs
    assert count is not None, "nobody asked"
    if sequence.computed_tokens == 0:
        sequence.prompt_logprobs.clear()  # of a beginning that was preempted
    sequence.prompt_logprobs.append(token_logprobs(logits, following, count))


def _extend(sequence: Sequence, run: list[int], logits: torch.Tensor, first: int) -> Update:
    """`first` is the row of `logits` that the run's first token was chosen from."""
    delivered = sequence.stops.deliver(run)
    tokens = run[: delivered.tokens]
    sequence.append(tokens)
    # All but the last emitted token have been rows of this step.
    sequence.computed_tokens = len(sequence) - 1
    count = sequence.sampling.parameters.logprobs
    return Update(
        sequence,
        tokens=len(tokens),
        text=delivered.text,
        finish_reason=delivered.reason,
        stopped_by=delivered.stopped_by,
        logprobs=None
        if count is None
        else token_logprobs(logits[first : first + len(tokens)], tokens, count),
    )
