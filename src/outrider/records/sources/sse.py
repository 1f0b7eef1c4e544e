"""Event streams, put together into bodies that read like those of plain answers."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from outrider.records.reading import BadRecord, Place
from outrider.records.sources.decoding import NotJson, decoded
from outrider.records.sources.document import Document, JsonDocument, StreamFacts

Framed: TypeAlias = Document | tuple[Place, BadRecord]

MOST_OPEN = 64
"""Streams that are put together at a time, when the events of several are interleaved."""
MOST_LINES = 10_000
"""Lines that one event may be spread over."""


@dataclass(slots=True)
class _Choice:
    """One choice: the parts of what is spread over events, and the last of everything else."""

    last: dict[str, Any] = field(default_factory=dict)
    message: dict[str, Any] = field(default_factory=dict)
    parts: dict[str, list[str]] = field(default_factory=dict)
    text: list[str] = field(default_factory=list)
    token_ids: list[Any] = field(default_factory=list)

    def add(self, chunk: Mapping[str, Any]) -> bool:
        """Take in the choice of one event; returns whether it carried text."""
        carried = False
        for name, value in chunk.items():
            if name == "delta" and isinstance(value, dict):
                carried |= self._add_delta(value)
            elif name == "text" and isinstance(value, str):
                self.text.append(value)
                carried |= bool(value)
            elif name == "token_ids" and isinstance(value, list):
                self.token_ids.extend(value)
                carried |= bool(value)
            elif value is not None:
                self.last[name] = value
        return carried

    def _add_delta(self, delta: Mapping[str, Any]) -> bool:
        carried = False
        for name, value in delta.items():
            if value is None:
                continue
            if isinstance(value, str) and name != "role":
                self.parts.setdefault(name, []).append(value)
                carried |= bool(value)
            elif isinstance(value, list):
                self.message.setdefault(name, []).extend(value)
                carried |= bool(value)
            else:
                self.message[name] = value
        return carried

    def body(self, index: int) -> dict[str, Any]:
        whole: dict[str, Any] = {"index": index, **self.last}
        message = {**self.message, **{name: "".join(some) for name, some in self.parts.items()}}
        if message:
            whole["message"] = message
        if self.text:
            whole["text"] = "".join(self.text)
        if self.token_ids:
            whole["token_ids"] = self.token_ids
        return whole


@dataclass(slots=True)
class _Stream:
    """One answer: its choices, and the last value of everything else that its events told."""

    place: Place
    last: dict[str, Any] = field(default_factory=dict)
    choices: dict[int, _Choice] | None = None
    content: list[str] = field(default_factory=list)
    chunks: int = 0
    first_chunk_tokens: int | None = None
    finished: bool = False

    def add(self, event: Mapping[str, Any]) -> None:
        carried = False
        for name, value in event.items():
            if name == "choices" and isinstance(value, list):
                carried |= self._add_choices(value)
            elif name == "content" and isinstance(value, str):
                self.content.append(value)
                carried |= bool(value)
            elif value is not None:
                # A native stream repeats all of its text so far in every event.
                if name in ("text", "output_ids"):
                    carried |= value not in ("", [], self.last.get(name))
                self.last[name] = value
        if carried and not self.chunks:
            self.first_chunk_tokens = _tokens_so_far(event)
        self.chunks += carried
        meta = event.get("meta_info")
        self.finished |= isinstance(meta, dict) and meta.get("finish_reason") is not None

    def _add_choices(self, choices: list[Any]) -> bool:
        carried = False
        if self.choices is None:
            self.choices = {}
        for chunk in choices:
            if not isinstance(chunk, dict):
                continue
            index = chunk.get("index")
            choice = self.choices.setdefault(index if type(index) is int else 0, _Choice())
            carried |= choice.add(chunk)
        return carried

    def document(self, *, ended: bool) -> JsonDocument:
        body = self.last
        if self.choices is not None:
            body["choices"] = [choice.body(index) for index, choice in self.choices.items()]
        if self.content:
            body["content"] = "".join(self.content)
        meta, usage = body.get("meta_info"), body.get("usage")
        counted = isinstance(meta, dict) and "completion_tokens" in meta
        usage_seen = counted or isinstance(usage, dict) or "timings" in body
        facts = StreamFacts(self.chunks, ended, usage_seen, self.first_chunk_tokens)
        return JsonDocument(self.place, body, facts)


def _tokens_so_far(event: Mapping[str, Any]) -> int | None:
    for name in ("usage", "meta_info"):
        told = event.get(name)
        tokens = told.get("completion_tokens") if isinstance(told, dict) else None
        if type(tokens) is int:
            return tokens
    return None


class EventStreams:
    """Puts the event streams of one source together, whether they follow each other or interleave.

    A stream ends with `[DONE]`, an event that says `"stop": true`, or the source. Events belong
    together by their id; those without one belong to the stream before them.
    """

    def __init__(self, source: str) -> None:
        self._source = source
        self._open: dict[str | None, _Stream] = {}
        self._latest: str | None = None
        self._pending: list[tuple[int, bytes]] = []

    def line(self, number: int, line: bytes) -> Iterator[Framed]:
        """Take in one line of an event stream, blank ones included."""
        name, _, value = line.strip().partition(b":")
        value = value.strip()
        if name == b"data" and value == b"[DONE]":
            yield from self._flush()
            yield from self._end()
        elif name == b"data" and value:
            yield from self._data(number, value)
        elif not name or len(self._pending) >= MOST_LINES:
            yield from self._flush()

    def _data(self, number: int, value: bytes) -> Iterator[Framed]:
        # An event may be spread over lines, and captures often lack the blank ones between events.
        if not self._pending or value.startswith(b"{"):
            try:
                event = decoded(value)
            except NotJson:
                pass
            else:
                yield from self._flush()
                yield from self.event(number, event)
                return
        self._pending.append((number, value))

    def event(self, number: int | None, event: object) -> Iterator[Framed]:
        """Take in one decoded event."""
        place = Place(self._source, number)
        if not isinstance(event, dict):
            yield place, BadRecord("an event of the stream is no JSON object")
            return
        key = _identity(event)
        key = self._latest if key is None else key
        stream = self._open.get(key)
        if stream is None:
            stream = self._open[key] = _Stream(place)
        self._latest = key
        stream.add(event)
        if event.get("stop") is True:
            yield from self._end()
        elif len(self._open) > MOST_OPEN:
            yield self._open.pop(next(iter(self._open))).document(ended=False)

    def finish(self) -> Iterator[Framed]:
        """Close what the end of the source has left open."""
        cut = [*self._flush()]
        if not self._open:
            yield from cut
        for stream in self._open.values():
            yield stream.document(ended=False)
        self._open.clear()
        self._latest = None

    def _end(self) -> Iterator[Framed]:
        """End the latest stream, and those that wait for nothing but this mark."""
        for key, stream in [*self._open.items()]:
            if key == self._latest or stream.finished:
                del self._open[key]
                yield stream.document(ended=True)
        self._latest = None

    def _flush(self) -> Iterator[Framed]:
        """Take in the event whose lines were gathered, if any."""
        if not self._pending:
            return
        number = self._pending[0][0]
        text = b"\n".join([line for _, line in self._pending])
        self._pending.clear()
        try:
            event = decoded(text)
        except NotJson as error:
            yield Place(self._source, number), BadRecord(f"an event of the stream: {error}")
        else:
            yield from self.event(number, event)


def is_chunk(value: object) -> bool:
    """Whether a JSON value is one event of a chat stream rather than a body."""
    return isinstance(value, dict) and value.get("object") == "chat.completion.chunk"


def _identity(event: Mapping[str, Any]) -> str | None:
    meta = event.get("meta_info")
    for identity in (event.get("id"), meta.get("id") if isinstance(meta, dict) else None):
        if isinstance(identity, str):
            return identity
    return None
