"""Who hears of requests as the engine serves them, such as the counters of `/metrics`."""

from typing import Protocol

from outrider.engine.engine import Engine
from outrider.engine.sequence import Sequence
from outrider.server.service.news import End, Timing


class Observer(Protocol):
    """Hears of every step and every end; called in the engine's thread, so it has to be quick."""

    def advanced(self, sequence: Sequence, tokens: int, timing: Timing) -> None:
        """So many output tokens have come."""

    def ended(self, sequence: Sequence, end: End) -> None:
        """A request has ended by itself."""

    def cancelled(self, sequence: Sequence) -> None:
        """A request's client has gone, or the server's time is up."""

    def stepped(self, engine: Engine) -> None:
        """A step is done."""


class NoObserver:
    """Listens to nothing."""

    def advanced(self, sequence: Sequence, tokens: int, timing: Timing) -> None:
        """Ignore it."""

    def ended(self, sequence: Sequence, end: End) -> None:
        """Ignore it."""

    def cancelled(self, sequence: Sequence) -> None:
        """Ignore it."""

    def stepped(self, engine: Engine) -> None:
        """Ignore it."""
