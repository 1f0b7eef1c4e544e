"""What is left of a request when it has ended."""

from dataclasses import dataclass

from outrider.engine.recorder import RecordedSteps
from outrider.server.metrics.request_times import RequestTimes


@dataclass(frozen=True, slots=True)
class EndedRequest:
    """The steps of a request, its times, and how many output tokens it has."""

    recorded: RecordedSteps
    times: RequestTimes
    completion_tokens: int
