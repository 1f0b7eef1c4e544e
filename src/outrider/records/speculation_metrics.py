"""What one request's steps come to, in the object that vLLM puts into a response."""

from collections.abc import Sequence
from typing import Any, Literal

import numpy as np

from outrider.records.request import StepRecord

Detail = Literal["summary", "detailed"]


def speculation_metrics(
    steps: Sequence[StepRecord], *, num_spec_tokens: int, detail: Detail, strict: bool = False
) -> dict[str, Any]:
    """Return `metrics.speculative_decoding` of vLLM 0.33 for one request, K = `num_spec_tokens`.

    Steps with a draft count, and what they accepted counts before a stop cut it. Unless `strict`
    limits it to vLLM's fields, beside them stand

    - `acceptance_histogram_by_draft_length`: for each draft length that occurred, as text, the
      steps that accepted exactly 0, 1, … up to all of it;
    - `num_accepted_emitted_tokens`, the accepted tokens that were delivered;
    - `num_trimmed_draft_tokens`, which were proposed and not verified, and are not among the
      drafted ones as they are in vLLM, and `num_invalidated_draft_tokens`, which a grammar forbade;
    - `draft_time_ms` and `verify_time_ms`: wall time of all decode steps that the request took part
      in, shared with the other requests of those steps.

    >>> step = StepRecord(2, 1, 2, draft_s=0.0, verify_s=0.0, step_s=0.0)
    >>> found = speculation_metrics([step], num_spec_tokens=3, detail="summary")
    >>> found["mean_acceptance_length"], found["acceptance_histogram"]
    (2.0, [0, 1, 0, 0])
    >>> found["acceptance_histogram_by_draft_length"]
    {'2': [0, 1, 0]}
    """
    drafted = [step for step in steps if step.drafted]
    metrics = _of_vllm(drafted, num_spec_tokens, detail)
    return metrics if strict else metrics | _beyond_vllm(drafted, steps)


def vllm_would_tell(*, answers: int, stopped_by: int | str | None) -> bool:
    """Whether vLLM 0.33 has the object at all for a request of so many `answers`.

    They are n times the prompts. It has none for several, nor after a stop string, which it finds
    when the engine has told already; a stop token is an int.
    """
    return answers == 1 and not isinstance(stopped_by, str)


def _of_vllm(drafted: Sequence[StepRecord], k: int, detail: Detail) -> dict[str, Any]:
    accepted_tokens = sum(step.accepted for step in drafted)
    draft_tokens = sum(step.drafted for step in drafted)
    lengths = [step.accepted for step in drafted]
    detailed = detail == "detailed" and bool(drafted)
    return {
        "mean_acceptance_length": 1 + accepted_tokens / len(drafted) if drafted else 1.0,
        "draft_acceptance_rate": accepted_tokens / draft_tokens if draft_tokens else 0.0,
        "acceptance_histogram": _histogram(lengths, k),
        "num_spec_steps": len(drafted),
        "num_accepted_draft_tokens": accepted_tokens,
        "num_draft_tokens": draft_tokens,
        "num_spec_tokens": k,
        "per_step_accepted": lengths if detailed else None,
        "per_step_drafted": [step.drafted for step in drafted] if detailed else None,
    }


def _beyond_vllm(drafted: Sequence[StepRecord], steps: Sequence[StepRecord]) -> dict[str, Any]:
    return {
        "acceptance_histogram_by_draft_length": {
            str(length): _histogram(
                [step.accepted for step in drafted if step.drafted == length], length
            )
            for length in sorted({step.drafted for step in drafted})
        },
        "num_accepted_emitted_tokens": sum(step.accepted_emitted for step in drafted),
        "num_trimmed_draft_tokens": sum(step.trimmed for step in steps),
        "num_invalidated_draft_tokens": sum(step.invalidated for step in steps),
        "draft_time_ms": 1000 * sum(step.draft_s for step in steps),
        "verify_time_ms": 1000 * sum(step.verify_s for step in steps),
    }


def _histogram(accepted: list[int], longest: int) -> list[int]:
    counts: list[int] = np.bincount(np.array(accepted, np.int64), minlength=longest + 1).tolist()
    return counts
