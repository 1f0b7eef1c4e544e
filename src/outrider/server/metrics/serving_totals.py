"""Everything the server counts since it started."""

from dataclasses import dataclass, field, replace
from typing import Self

from outrider.records.request import FinishReason, StepRecord
from outrider.server.metrics.engine_load import EngineLoad
from outrider.server.metrics.speculation_counts import SpeculationCounts

ABORT = "abort"
"""How vLLM calls the end of a request whose client has gone."""

ENDS = (*(reason.value for reason in FinishReason), ABORT)


@dataclass(slots=True)
class ServingTotals:
    """Counts of tokens, decode steps and ended requests; `speculation` is None without any.

    Prompt tokens count once the first output token is there. `cached_tokens` of them the prefix
    cache had. A request's first output token comes of its prefill and is no decode token.
    """

    speculation: SpeculationCounts | None
    prompt_tokens: int = 0
    cached_tokens: int = 0
    generation_tokens: int = 0
    prefix_queries: int = 0
    prefix_hits: int = 0
    decode_steps: int = 0
    decode_tokens: int = 0
    ended: dict[str, int] = field(default_factory=lambda: dict.fromkeys(ENDS, 0))

    @property
    def computed_prompt_tokens(self) -> int:
        """Prompt tokens that were not in the prefix cache."""
        return self.prompt_tokens - self.cached_tokens

    def add(self, record: StepRecord) -> None:
        """Count one decode step of one request."""
        self.decode_steps += 1
        self.decode_tokens += record.emitted
        if self.speculation is not None:
            self.speculation.add(record)

    def copy(self) -> Self:
        """Return the totals as they are now."""
        speculation = None if self.speculation is None else self.speculation.copy()
        return replace(self, speculation=speculation, ended=self.ended.copy())


@dataclass(frozen=True, slots=True)
class Snapshot:
    """The totals at a moment, the load, and the hit rate (0 to 1) of the most recent requests."""

    totals: ServingTotals
    load: EngineLoad
    prefix_hit_rate: float
