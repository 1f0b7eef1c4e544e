"""What one request did, step by step: the record in which every source of numbers ends."""

from dataclasses import dataclass
from enum import StrEnum


class Phase(StrEnum):
    """Whether a request counts: warm-up is kept, and is in no statistic."""

    WARMUP = "warmup"
    MEASURED = "measured"


class FinishReason(StrEnum):
    """Why a request ended."""

    STOP = "stop"
    LENGTH = "length"
    ERROR = "error"
    """The engine could not go on with it."""


@dataclass(frozen=True, slots=True)
class StepRecord:
    """One decode step of one request; the prefill, which emits the first token, is not one.

    `drafted` is 0 when the step had no draft. `emitted` is what remained after a stop cut the
    run, so it may be less than `accepted + 1`. `draft_s` and `verify_s` (the target's forward
    pass and the judgement) are parts of `step_s`, the wall time of the whole step. `trimmed` tokens
    were proposed and not verified because that did not pay; they are not among `drafted`. Nor are
    the `invalidated` ones, which a grammar forbids.
    """

    drafted: int
    accepted: int
    emitted: int
    draft_s: float
    verify_s: float
    step_s: float
    trimmed: int = 0
    invalidated: int = 0

    @property
    def accepted_emitted(self) -> int:
        """The accepted tokens that were delivered: those before a stop cut the run."""
        return min(self.accepted, self.emitted)


@dataclass(frozen=True, slots=True)
class RequestRecord:
    """One finished request of one arm; `decode_s` is the sum of its steps' `step_s`."""

    arm: str
    prompt_id: str
    repeat: int
    phase: Phase
    prompt_tokens: int
    output_token_ids: tuple[int, ...]
    finish_reason: FinishReason
    prefill_s: float
    steps: tuple[StepRecord, ...]

    @property
    def decode_s(self) -> float:
        """Wall time of all decode steps, the prefill left out, in seconds."""
        return sum(step.step_s for step in self.steps)

    @property
    def decode_tokens(self) -> int:
        """Output tokens that decode steps emitted: all but the first, which the prefill gave."""
        return sum(step.emitted for step in self.steps)
