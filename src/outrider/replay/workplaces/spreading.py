"""Files replayed apart from each other, and their sums put together in the order of the log."""

import io
from collections.abc import Generator, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from typing import Protocol, TypeAlias

from outrider.errors import UnreadableSource
from outrider.records.reading import BadRecord, Place
from outrider.replay.replaying import Facts, Replay, collector_of
from outrider.replay.workplaces.base import Replayed, Work
from outrider.replay.workplaces.here import Here
from outrider.replay.workplaces.log_files import LogFile, log_files


@dataclass(frozen=True, slots=True)
class Lost:
    """No part at all, since whoever replayed the file died; `reason` is what is known of it."""

    reason: str


Parts: TypeAlias = Generator[Replayed | Lost, None, None]


class Workers(Protocol):
    """Has files replayed by `replay_file`, several at a time, and not all of them at once."""

    def __call__(self, work: Work, files: Sequence[LogFile]) -> Parts:
        """Yield what each file came to, in their order."""


def replay_file(work: Work, file: LogFile) -> Replayed:
    """Replay one file by itself; one that cannot be opened is a bad record.

    It returns sums, of a size that does not depend on how many answers there were.
    """
    try:
        part = Here(io.BytesIO()).replay(work, [file.name])
    except UnreadableSource as error:
        unread = Replay(work.settings, work.ks, by=work.by, jobs=1)
        unread.add(Place(file.name), BadRecord(error.seen.removeprefix(f"{file.name} ")))
        part = Replayed(unread.finish(), unread.facts)
    part.collection.bad = [(_shown(place, file), reason) for place, reason in part.collection.bad]
    if part.facts.first_unsorted is not None:
        part.facts.first_unsorted = _shown(part.facts.first_unsorted, file)
    return part


def spread(work: Work, sources: Sequence[str], workers: Workers) -> Replayed:
    """Have the files of the sources replayed by workers, and put their sums together."""
    found = [*log_files(sources)]
    files = [each for each in found if isinstance(each, LogFile)]
    collector, facts, lost = collector_of(work.settings, work.ks, work.by), Facts(), 0
    with closing(_parts(work, files, workers)) as parts:
        for each in found:
            if not isinstance(each, LogFile):
                collector.add(*each)
                continue
            part = next(parts)
            if isinstance(part, Lost):
                lost += 1
                collector.add(Place(each.shown), BadRecord(part.reason))
            else:
                collector.merge(part.collection)
                facts.add(part.facts)
    return Replayed(collector.finish(), facts, files=len(files), lost=lost)


def _parts(work: Work, files: Sequence[LogFile], workers: Workers) -> Parts:
    first = work.tokenizer
    with closing(workers(work, files)) as parts:
        for file, found in zip(files, parts, strict=True):
            part = found
            if isinstance(part, Replayed):
                first = first or part.tokenizer
                if part.tokenizer not in (None, first):
                    # By itself the file could not know what an earlier one had begun with.
                    [part] = workers(replace(work, tokenizer=first), [file])
            yield part


def _shown(place: Place, file: LogFile) -> Place:
    return Place(file.shown, place.line) if place.source == file.name else place
