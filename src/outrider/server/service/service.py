"""The engine as the event loop sees it: who may come in, and where the answers come out."""

import asyncio
import time
from collections.abc import Callable
from contextlib import suppress

from outrider.engine.engine import Engine
from outrider.server.metrics.serving_metrics import ServingMetrics
from outrider.server.service.engine_thread import Delivery, EngineThread
from outrider.server.service.place import Place
from outrider.server.service.refusals import Draining, EngineDown, QueueFull

SHUT_DOWN = "the server was told to end before the answer was complete"


class Service:
    """Lets at most `capacity` answers run and wait at once, and gives each request an outlet.

    All methods belong to the event loop that `start` was called on. `engine` reports to `metrics`,
    by the same clock, and is the thread's alone from `start` on.
    """

    def __init__(
        self,
        engine: Engine,
        metrics: ServingMetrics,
        *,
        capacity: int,
        clock: Callable[[], float] = time.perf_counter,
    ) -> None:
        self.capacity = capacity
        self.metrics = metrics
        self.clock = clock
        self.draining = False
        self._places: set[Place] = set()
        self._idle = asyncio.Event()
        self._idle.set()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread = EngineThread(
            engine,
            metrics,
            hand_over=self._hand_over,
            clock=clock,
        )

    @property
    def failure(self) -> str | None:
        """Why no request is answered any more, None while the engine works."""
        return self._thread.failure

    @property
    def answers(self) -> int:
        """How many answers run or wait."""
        return sum(place.answers for place in self._places)

    def start(self) -> None:
        """Begin to serve, on the event loop that runs now."""
        self._loop = asyncio.get_running_loop()
        self._thread.start()

    def check_room(self, answers: int) -> None:
        """Raise QueueFull, Draining or EngineDown where so many answers cannot be taken in now."""
        if self.failure is not None:
            raise EngineDown(self.failure)
        if self.draining:
            raise Draining("the server is ending and takes no new requests")
        if self.answers + answers > self.capacity:
            raise QueueFull(
                f"{self.answers} answers run or wait and {answers} more are asked for;"
                f" there is room for {self.capacity}"
            )

    def reserve(self, answers: int) -> Place:
        """Make room for a request; raises what `check_room` does."""
        self.check_room(answers)
        place = Place(self._thread, answers, self._vacate)
        self._places.add(place)
        self._idle.clear()
        return place

    async def drain(self, timeout_s: float) -> None:
        """Take nothing new, let what was taken finish for so long, and end the rest."""
        self.draining = True
        try:
            async with asyncio.timeout(timeout_s):
                await self._idle.wait()
        except TimeoutError:
            self.give_up()

    def give_up(self) -> None:
        """End all that runs or waits, and tell its readers why."""
        for place in tuple(self._places):
            place.give_up(SHUT_DOWN)

    def stop(self) -> None:
        """End the engine's thread."""
        self._thread.stop()

    def _vacate(self, place: Place) -> None:
        self._places.discard(place)
        if not self._places:
            self._idle.set()

    def _hand_over(self, deliveries: list[Delivery]) -> None:
        """Called in the engine's thread: wakes the event loop once for a whole step."""
        assert self._loop is not None, "started"
        with suppress(RuntimeError):  # the loop is closed: nobody is left to tell
            self._loop.call_soon_threadsafe(_distribute, deliveries)


def _distribute(deliveries: list[Delivery]) -> None:
    for outlet, news in deliveries:
        outlet.add(news)
