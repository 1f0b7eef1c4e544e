"""Where the step loop reports what each step did."""

from collections import defaultdict
from typing import Protocol

from outrider.engine.sequence import Sequence
from outrider.records.request import StepRecord


class Recorder(Protocol):
    """Hears of every decode step."""

    def step(self, sequence: Sequence, record: StepRecord) -> None:
        """Take note of one decode step of `sequence`."""


class StepRecorder:
    """Keeps the steps of each running request until they are taken."""

    def __init__(self) -> None:
        self._steps: defaultdict[str, list[StepRecord]] = defaultdict(list)

    def step(self, sequence: Sequence, record: StepRecord) -> None:
        """Append one decode step to those of `sequence`."""
        self._steps[sequence.request_id].append(record)

    def take(self, sequence: Sequence) -> tuple[StepRecord, ...]:
        """Return the steps of `sequence` in order and forget them; none is an empty tuple."""
        return tuple(self._steps.pop(sequence.request_id, ()))
