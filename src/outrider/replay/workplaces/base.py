"""What is to be done with a log, what comes of it, and what every workplace offers."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from outrider.records.collecting import Collection
from outrider.replay.logs.base import LogFormat
from outrider.replay.logs.text_encoder import TextEncoder
from outrider.replay.lookup.base import LookupSetting
from outrider.replay.replaying import Facts


@dataclass(frozen=True, slots=True)
class Work:
    """How a log is read and replayed; another process understands it too.

    `by`, `encoder`, `forced`, `vocabulary_tokens` and `tokenizer` are as in `Replay` and
    `LogReader`. `jobs` threads replay each part.
    """

    settings: tuple[LookupSetting, ...]
    ks: tuple[int, ...]
    by: tuple[str, ...] = ()
    jobs: int = 1
    encoder: TextEncoder | None = None
    forced: LogFormat | None = None
    vocabulary_tokens: int | None = None
    tokenizer: str | None = None


@dataclass(frozen=True, slots=True)
class Replayed:
    """The sums of a log, or of a part of one, and what was noticed of it.

    `tokenizer` is the first that an entry names. `files` were replayed apart from each other; None
    where one went on from the other. `lost` of them are in no sum, since whoever had them died.
    """

    collection: Collection
    facts: Facts
    tokenizer: str | None = None
    files: int | None = None
    lost: int = 0


class Workplace(Protocol):
    """Replays logs somewhere. What each of them is and where it lies is up to the one who asks."""

    def replay(self, work: Work, sources: Sequence[str]) -> Replayed:
        """Replay everything; UnreadableSource where a name is that of nothing."""
