"""What the engine has to say of one answer."""

from dataclasses import dataclass, field

from outrider.engine.recorder import RecordedSteps
from outrider.engine.sampling.logprobs import Logprobs
from outrider.records.request import FinishReason


@dataclass(slots=True)
class Timing:
    """When an answer was asked for, first took part in a step, and got its tokens; in seconds.

    The clock is the engine's. None is what has not happened.
    """

    queued_s: float
    scheduled_s: float | None = None
    first_token_s: float | None = None
    last_token_s: float | None = None


@dataclass(frozen=True, slots=True)
class End:
    """How an answer ended: as the engine's `Update` has it, with its steps and times."""

    reason: FinishReason
    stopped_by: int | str | None = None
    failure: str | None = None
    steps: RecordedSteps = field(default_factory=RecordedSteps)
    timing: Timing = field(default_factory=lambda: Timing(0.0))


@dataclass(slots=True)
class News:
    """What is new of answer number `answer` since somebody last looked."""

    answer: int
    token_ids: list[int] = field(default_factory=list)
    text: str = ""
    logprobs: list[Logprobs] = field(default_factory=list)
    end: End | None = None

    def add(self, later: "News") -> None:
        """Take in what came afterwards."""
        self.token_ids += later.token_ids
        self.text += later.text
        self.logprobs += later.logprobs
        self.end = later.end
