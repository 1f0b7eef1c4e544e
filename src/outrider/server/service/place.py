"""A request's place among those that the service takes in."""

from collections.abc import Callable
from collections.abc import Sequence as Sequence_

from outrider.engine.sequence import Sequence
from outrider.records.request import FinishReason
from outrider.server.service.engine_thread import EngineThread
from outrider.server.service.news import End, News
from outrider.server.service.outlet import Outlet
from outrider.server.service.refusals import Draining


class Place:
    """Room for so many `answers`; whoever holds it closes it, whatever happens.

    `vacate` is called once it is free again, which may be before it is closed.
    """

    def __init__(
        self, thread: EngineThread, answers: int, vacate: Callable[["Place"], None]
    ) -> None:
        self.answers = answers
        self._thread = thread
        self._vacate = vacate
        self._sequences: Sequence_[Sequence] = ()
        self._outlet: Outlet | None = None
        self._given_up: str | None = None

    def run(self, sequences: Sequence_[Sequence], *, whole: bool) -> Outlet:
        """Have `sequences` answered; the place is free again when all have ended.

        Raises Draining where the place was given up before.
        """
        if self._given_up is not None:
            raise Draining(self._given_up)
        self._sequences = sequences
        self._outlet = Outlet(len(sequences), whole=whole, on_end=lambda: self._vacate(self))
        self._thread.submit(sequences, self._outlet)
        return self._outlet

    def give_up(self, failure: str) -> None:
        """End what still runs, and tell its reader why."""
        self._given_up = failure
        self.close()
        if self._outlet is not None:
            for answer in tuple(self._outlet.running):
                end = End(FinishReason.ERROR, failure=failure)
                self._outlet.add(News(answer, end=end))

    def close(self) -> None:
        """Cancel what still runs; nothing happens if all has ended."""
        if self._outlet is not None and self._outlet.running:
            self._thread.cancel(each.request_id for each in self._sequences)
        self._vacate(self)
