"""How busy the engine is at a moment."""

from dataclasses import dataclass
from typing import Self

from outrider.engine.scheduling.scheduler import Scheduler


@dataclass(frozen=True, slots=True)
class EngineLoad:
    """Requests that run and wait, the used part of the cache (0 to 1), preemptions since start."""

    running: int = 0
    waiting: int = 0
    kv_cache_usage: float = 0.0
    preemptions: int = 0

    @classmethod
    def of(cls, scheduler: Scheduler) -> Self:
        """Look at `scheduler`, from any thread: only lengths and one count are read."""
        pool = scheduler.cache.pool
        return cls(
            running=len(scheduler.running),
            waiting=len(scheduler.waiting),
            kv_cache_usage=1 - pool.free_blocks / pool.num_blocks,
            preemptions=scheduler.preemptions,
        )
