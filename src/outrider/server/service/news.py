"""What the engine has to say of one answer."""

from dataclasses import dataclass, field

from outrider.engine.sampling.logprobs import Logprobs
from outrider.records.request import FinishReason
from outrider.server.metrics.ended_request import EndedRequest


@dataclass(frozen=True, slots=True)
class End:
    """How an answer ended, as the engine's `Update` has it; `counted` are its steps and times.

    There is nothing to count of one that the engine never ran.
    """

    reason: FinishReason
    stopped_by: int | str | None = None
    failure: str | None = None
    counted: EndedRequest | None = None


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
