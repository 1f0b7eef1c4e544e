"""The engine: requests come, run together step by step, and leave."""

from outrider.engine.drafting.base import KeepsState
from outrider.engine.loop import StepLoop
from outrider.engine.scheduling.scheduler import Scheduler
from outrider.engine.sequence import Sequence
from outrider.engine.update import Update
from outrider.errors import InvalidSetting


class Engine:
    """Runs any number of requests; whoever drives it calls `step` while it is `busy`."""

    def __init__(self, loop: StepLoop, scheduler: Scheduler) -> None:
        self.loop = loop
        self.scheduler = scheduler
        self._sequences: dict[str, Sequence] = {}

    @property
    def busy(self) -> bool:
        """Whether any request runs or waits."""
        return bool(self._sequences)

    def add(self, sequence: Sequence) -> None:
        """Take a request in; InvalidSetting if it can never run."""
        most = self.loop.model.max_length
        if sequence.most_tokens > most:
            raise InvalidSetting(
                f"request {sequence.request_id!r} has {sequence.prompt_tokens:,} prompt tokens and"
                f" asks for {sequence.most_tokens - sequence.prompt_tokens:,} more",
                f"at most {most:,} together",
                "shorten the prompt or lower max_tokens",
            )
        if sequence.request_id in self._sequences:
            raise InvalidSetting(
                f"a second request {sequence.request_id!r}", "an id of its own", "choose another id"
            )
        self.scheduler.add(sequence)
        self._sequences[sequence.request_id] = sequence

    def cancel(self, request_id: str) -> None:
        """End a request whose client has gone; nothing happens if it has ended already."""
        sequence = self._sequences.pop(request_id, None)
        if sequence is not None:
            self.scheduler.remove(sequence)
            if isinstance(self.loop.drafter, KeepsState):
                self.loop.drafter.forget(sequence)

    def step(self) -> list[Update]:
        """Run one step and return the news of each request that has any."""
        pieces = self.scheduler.schedule(self.loop.k)
        if not pieces:
            return []
        updates = self.loop.step(pieces)
        for piece in pieces:
            self.scheduler.cache.keep(piece.sequence)
        for update in updates:
            if update.finish_reason is not None:
                self.cancel(update.sequence.request_id)
        return updates
