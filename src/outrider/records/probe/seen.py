"""What was seen of a server: its pages, and its answers to a short request."""

from collections.abc import Mapping
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any, TypeAlias

from outrider.records.reading import AcceptanceRecord, Reading
from outrider.records.scrape import Scrape

KEY_ASKED_FOR = (HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN)


@dataclass(frozen=True, slots=True)
class Missing:
    """Something that is not there to judge by; `asked` tells whether it was asked for.

    `status` is the HTTP status of what came back in its place.
    """

    reason: str
    asked: bool
    status: int | None = None


@dataclass(frozen=True, slots=True)
class Answer:
    """An answer, read the way `outrider report` reads it.

    `adapter` is the name of what recognised it, None where nothing did. `path` and `fields` are
    how it was asked for: the fields of the request that no answer needs, only its figures.
    """

    path: str
    fields: Mapping[str, Any]
    adapter: str | None
    reading: Reading

    @property
    def record(self) -> AcceptanceRecord | None:
        """The figures, None where it tells none."""
        return self.reading if isinstance(self.reading, AcceptanceRecord) else None


@dataclass(frozen=True, slots=True)
class Metrics:
    """The page /metrics, at first and, where requests were sent, after them.

    `engines` are those that any line of it is of. `needs_key` tells whether it asked for one.
    """

    first: Scrape
    second: Scrape | None
    engines: frozenset[str]
    needs_key: bool

    @property
    def k(self) -> int | None:
        """The largest number of draft positions that are counted, None where none are."""
        positions = [series.position for series in self.first.counts]
        return max((1 + place for place in positions if place is not None), default=None)


Answered: TypeAlias = Answer | Missing


@dataclass(frozen=True, slots=True)
class Seen:
    """A server as it was found; None is what it does not tell.

    `root` is its address without a password, `has_key` whether requests carried a key.
    """

    root: str
    has_key: bool
    engine: str | None
    version: str | None
    models: tuple[str, ...] | None
    model: str | None
    metrics: Metrics | Missing
    plain: Answered
    streamed: Answered
    requests_sent: int

    @property
    def answer(self) -> Answered:
        """The answer to judge by: the plain one if there is one."""
        if isinstance(self.plain, Missing) and isinstance(self.streamed, Answer):
            return self.streamed
        return self.plain

    @property
    def wants_key(self) -> bool:
        """Whether the server refused a request for want of a key."""
        return isinstance(self.answer, Missing) and self.answer.status in KEY_ASKED_FOR

    @property
    def is_inference_server(self) -> bool:
        """Whether anything that came back is of one."""
        known = self.engine is not None or self.models is not None
        return known or isinstance(self.answer, Answer)

    @property
    def log_stats(self) -> bool | None:
        """Whether vLLM counts at all, which --disable-log-stats ends; None: unknown."""
        if self.engine != "vllm" or isinstance(self.metrics, Missing):
            return None
        return "vllm" in self.metrics.engines

    @property
    def speculates(self) -> bool | None:
        """Whether the server has a drafter; None: unknown.

        vLLM has its counters of drafts, at 0, as soon as it has one.
        """
        counted = not isinstance(self.metrics, Missing) and bool(self.metrics.first.counts)
        if counted or (isinstance(self.answer, Answer) and self.answer.record is not None):
            return True
        return False if self.log_stats else None
