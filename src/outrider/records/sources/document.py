"""What adapters are given to recognise and convert."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeAlias

from outrider.records.reading import Place, TagValue


@dataclass(frozen=True, slots=True)
class StreamFacts:
    """What was seen of an event stream besides its content.

    `chunks` counts the events that carried text, `ended` tells whether its end mark arrived,
    `usage_seen` whether one of its events had token counts. `first_chunk_tokens` is how many the
    first of those events held, None where it did not tell.
    """

    chunks: int
    ended: bool
    usage_seen: bool
    first_chunk_tokens: int | None = None


# Not frozen, which would double the time to make one; there is one for every line of JSON.
@dataclass(slots=True)
class JsonDocument:
    """One JSON value: a whole file, a line of one, or a stream put together to one body.

    `value` is as decoded. `tags` are what an envelope around it told: the parameters of the
    request and any other scalar beside it. `request` is the request itself where there was one.
    """

    place: Place
    value: Any
    stream: StreamFacts | None = None
    tags: Mapping[str, TagValue] = field(default_factory=dict)
    request: Mapping[str, Any] | None = None


@dataclass(frozen=True, slots=True)
class TextDocument:
    """Text that is not JSON: `head` is its first part (up to 64 KiB), `lines` opens all of it.

    `lines()` yields each line with its number from 1, without its end, and may be called once.
    """

    place: Place
    head: str
    lines: Callable[[], Iterator[tuple[int, str]]]


@dataclass(frozen=True, slots=True)
class FileDocument:
    """A binary file that only its adapter can open; `magic` is its first 64 bytes."""

    place: Place
    path: Path
    magic: bytes


Document: TypeAlias = JsonDocument | TextDocument | FileDocument
