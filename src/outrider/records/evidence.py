"""All that a run left behind."""

from dataclasses import dataclass
from typing import NamedTuple

from outrider.records.divergence import Divergence
from outrider.records.environment import Environment
from outrider.records.prompt import PromptRecord
from outrider.records.request import Phase, RequestRecord
from outrider.records.run import RunSettings


class RequestKey(NamedTuple):
    """What tells a measured request from all others of its run."""

    arm: str
    prompt_id: str
    repeat: int


@dataclass(frozen=True, slots=True)
class Evidence:
    """The content of an evidence file.

    `prompts` are in the order of the workload, `requests` in the order in which they ended,
    warm-up included. `sessions[i]` is the index in `environments` of the session of `requests[i]`.
    """

    settings: RunSettings
    environments: tuple[Environment, ...]
    prompts: tuple[PromptRecord, ...]
    requests: tuple[RequestRecord, ...]
    sessions: tuple[int, ...]
    divergences: tuple[Divergence, ...]

    @property
    def measured(self) -> tuple[RequestRecord, ...]:
        """The requests that count, in the order in which they ended."""
        return tuple(request for request in self.requests if request.phase is Phase.MEASURED)

    def finished(self) -> frozenset[RequestKey]:
        """What a resumed run does not repeat."""
        return frozenset(
            RequestKey(request.arm, request.prompt_id, request.repeat) for request in self.measured
        )

    @property
    def complete(self) -> bool:
        """Whether every arm has answered every prompt as often as was asked."""
        wanted = len(self.settings.arms) * len(self.prompts) * self.settings.repeats
        return len(self.finished()) == wanted
