"""Reads logs into answers; whatever is wrong with one is told in its place."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import BinaryIO

import httpx2

from outrider.records.reading import BadRecord, NoMetrics, Place
from outrider.records.sources.opening import Visited, check_source
from outrider.replay.answer import LoggedAnswer
from outrider.replay.logs.base import Entry, LogFormat, Logged
from outrider.replay.logs.entries import entries_of
from outrider.replay.logs.registry import FORMATS
from outrider.replay.logs.text_encoder import TextEncoder

_MOST_SHOWN = 60


@dataclass(slots=True)
class LogReader:
    """Reads logs in their order.

    `forced` reads all of them, whatever they look like. Ids from `vocabulary_tokens` on, and
    another tokenizer than `tokenizer`, the first that an entry names unless one is given, make an
    entry a bad record: its ids do not mean what the others do.
    """

    encoder: TextEncoder | None = None
    forced: LogFormat | None = None
    vocabulary_tokens: int | None = None
    tokenizer: str | None = None
    _last: LogFormat | None = field(default=None, init=False)

    def read(
        self, names: Iterable[str], *, stdin: BinaryIO, http: httpx2.Client
    ) -> Iterator[tuple[Place, Logged]]:
        """Yield every answer; UnreadableSource where a name is that of nothing."""
        sources, visited = [*names], Visited()
        for name in sources:
            check_source(name)
        for name in sources:
            for entry in entries_of(name, stdin=stdin, http=http, visited=visited):
                if isinstance(entry, tuple):
                    yield entry
                else:
                    yield from ((entry.place, each) for each in self.answers(entry))

    def answers(self, entry: Entry) -> Iterator[Logged]:
        """Yield the answers of one entry, checked."""
        try:
            if reason := self._other_tokenizer(entry):
                yield BadRecord(reason)
                return
            found = self._format_of(entry)
            if found is None and (entry.value.get("error") or entry.value.get("object") == "error"):
                yield NoMetrics("an error in place of an answer")
                return
            if found is None:
                names = ", ".join(map(repr, entry.value))[:_MOST_SHOWN]
                kind = "answer" if self.forced is None else f"{self.forced.name} answer"
                yield BadRecord(f"no {kind} in an object with {names or 'nothing'}")
                return
            for each in found.answers(entry, self.encoder):
                yield self._within_vocabulary(each)
        except Exception as error:  # noqa: BLE001 - no content may stop the reading of the rest
            cause = f"{type(error).__name__}: {error}"[:_MOST_SHOWN]
            yield BadRecord(f"unexpected content ({cause})")

    def _format_of(self, entry: Entry) -> LogFormat | None:
        if self.forced is not None:
            return self.forced if self.forced.recognises(entry) else None
        if self._last is None or not self._last.recognises(entry):
            self._last = next((each for each in FORMATS if each.recognises(entry)), None)
        return self._last

    def _other_tokenizer(self, entry: Entry) -> str | None:
        named = entry.value.get("tokenizer")
        if not isinstance(named, str) or not named:
            return None
        if self.tokenizer is None:
            self.tokenizer = named
        if named == self.tokenizer:
            return None
        return (
            f"ids of the tokenizer {named[:_MOST_SHOWN]} in a log that began with those of"
            f" {self.tokenizer[:_MOST_SHOWN]}; replay each in a log of its own"
        )

    def _within_vocabulary(self, answer: Logged) -> Logged:
        if not isinstance(answer, LoggedAnswer) or self.vocabulary_tokens is None:
            return answer
        highest = max(int(answer.prompt.max(initial=0)), int(answer.completion.max(initial=0)))
        if highest < self.vocabulary_tokens:
            return answer
        return BadRecord(
            f"the id {highest} is beyond a vocabulary of {self.vocabulary_tokens:,} tokens"
        )
