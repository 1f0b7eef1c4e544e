"""What one request's steps come to, in the object that vLLM puts into a response."""

from collections.abc import Sequence
from typing import Any, Literal

import numpy as np

from outrider.records.request import StepRecord

Detail = Literal["summary", "detailed"]


def speculation_metrics(
    steps: Sequence[StepRecord], *, num_spec_tokens: int, detail: Detail
) -> dict[str, Any]:
    """Return `metrics.speculative_decoding` of vLLM 0.32 for one request, K = `num_spec_tokens`.

    Steps with a draft count, and what they accepted counts before a stop cut it. Beside vLLM's
    fields stand `num_accepted_emitted_tokens`, the accepted tokens that were delivered,
    `num_trimmed_draft_tokens`, which were proposed and not verified, and are not among the drafted
    ones as they are in vLLM, and `num_invalidated_draft_tokens`, which a grammar forbade. The
    `acceptance_histogram_by_draft_length` has, for each length drafted, how many steps accepted 0,
    1, ... of it. `draft_time_ms` and `verify_time_ms` are those of all decode steps that the
    request took part in, whoever else did.

    >>> step = StepRecord(2, 1, 2, draft_s=0.0, verify_s=0.0, step_s=0.0)
    >>> found = speculation_metrics([step], num_spec_tokens=3, detail="summary")
    >>> found["mean_acceptance_length"], found["acceptance_histogram"]
    (2.0, [0, 1, 0, 0])
    """
    drafted = [step for step in steps if step.drafted]
    accepted_tokens = sum(step.accepted for step in drafted)
    draft_tokens = sum(step.drafted for step in drafted)
    lengths = [step.accepted for step in drafted]
    detailed = detail == "detailed" and bool(drafted)
    return {
        "mean_acceptance_length": 1 + accepted_tokens / len(drafted) if drafted else 1.0,
        "draft_acceptance_rate": accepted_tokens / draft_tokens if draft_tokens else 0.0,
        "acceptance_histogram": np.bincount(
            np.array(lengths, np.int64), minlength=num_spec_tokens + 1
        ).tolist(),
        "num_spec_steps": len(drafted),
        "num_accepted_draft_tokens": accepted_tokens,
        "num_draft_tokens": draft_tokens,
        "num_spec_tokens": num_spec_tokens,
        "per_step_accepted": lengths if detailed else None,
        "per_step_drafted": [step.drafted for step in drafted] if detailed else None,
        "num_accepted_emitted_tokens": sum(step.accepted_emitted for step in drafted),
        "num_trimmed_draft_tokens": sum(step.trimmed for step in steps),
        "num_invalidated_draft_tokens": sum(step.invalidated for step in steps),
        "acceptance_histogram_by_draft_length": _by_draft_length(drafted),
        "draft_time_ms": 1e3 * sum(step.draft_s for step in steps),
        "verify_time_ms": 1e3 * sum(step.verify_s for step in steps),
    }


def _by_draft_length(drafted: Sequence[StepRecord]) -> dict[str, list[int]]:
    accepted: dict[int, list[int]] = {}
    for step in drafted:
        accepted.setdefault(step.drafted, []).append(step.accepted)
    return {
        str(length): np.bincount(accepted[length], minlength=length + 1).tolist()
        for length in sorted(accepted)
    }
