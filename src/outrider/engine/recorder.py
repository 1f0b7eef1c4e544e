"""Where the step loop reports what each step did."""

from collections import defaultdict
from dataclasses import dataclass, field
from typing import Protocol

from outrider.engine.sequence import Sequence
from outrider.records.request import StepRecord


class Recorder(Protocol):
    """Hears of every step."""

    def prefill(self, sequence: Sequence, step_s: float) -> None:
        """Take note of a step, so many seconds long, that computed part of a prompt."""

    def step(self, sequence: Sequence, record: StepRecord) -> None:
        """Take note of one decode step of `sequence`."""


@dataclass(slots=True)
class RecordedSteps:
    """The steps of one request: how long those of the prefill took, and each decode step."""

    prefill_s: float = 0.0
    steps: list[StepRecord] = field(default_factory=list)


class StepRecorder:
    """Keeps the steps of each running request until they are taken."""

    def __init__(self) -> None:
        self._recorded: defaultdict[str, RecordedSteps] = defaultdict(RecordedSteps)

    def prefill(self, sequence: Sequence, step_s: float) -> None:
        """Add to the time that the prefill of `sequence` took."""
        self._recorded[sequence.request_id].prefill_s += step_s

    def step(self, sequence: Sequence, record: StepRecord) -> None:
        """Append one decode step to those of `sequence`."""
        self._recorded[sequence.request_id].steps.append(record)

    def take(self, sequence: Sequence) -> RecordedSteps:
        """Return what is known of `sequence` and forget it."""
        return self._recorded.pop(sequence.request_id, RecordedSteps())
