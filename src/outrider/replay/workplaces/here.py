"""All logs one after another in this process, as one log."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import BinaryIO

import httpx2

from outrider.records.sources.opening import TIMEOUT_S
from outrider.replay.logs.reading import LogReader
from outrider.replay.replaying import Replay
from outrider.replay.workplaces.base import Replayed, Work


@dataclass(frozen=True, slots=True)
class Here:
    """Reads in one thread and replays in others; `stdin` is what the name - stands for."""

    stdin: BinaryIO

    def replay(self, work: Work, sources: Sequence[str]) -> Replayed:
        """Replay the sources in their order: what suffix decoding caches goes on through all."""
        reader = LogReader(
            encoder=work.encoder,
            forced=work.forced,
            vocabulary_tokens=work.vocabulary_tokens,
            tokenizer=work.tokenizer,
        )
        replay = Replay(work.settings, work.ks, by=work.by, jobs=work.jobs)
        with httpx2.Client(timeout=TIMEOUT_S, follow_redirects=True) as http:
            for place, reading in reader.read(sources, stdin=self.stdin, http=http):
                replay.add(place, reading)
        return Replayed(replay.finish(), replay.facts, reader.tokenizer)
