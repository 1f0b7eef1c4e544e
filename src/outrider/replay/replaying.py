"""Takes a log answer by answer, and adds up what every setting would have done with it."""

from collections.abc import Iterable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from outrider.acceptance.columns import columns_of
from outrider.acceptance.intervals import FloatArray
from outrider.acceptance.totals import MOST_CLUSTERS, Totals
from outrider.records.collecting import CellKey, Collection, Collector
from outrider.records.reading import AcceptanceRecord, BadRecord, NoMetrics, Place, Scope
from outrider.records.segment_keys import SegmentValue, segment_values
from outrider.replay.answer import LoggedAnswer
from outrider.replay.batch import AnswerBatch
from outrider.replay.lookup.base import LookupPass, LookupSetting
from outrider.replay.rows import sums_of
from outrider.replay.walk import tally

ENGINE = "replay"
MOST_SEGMENTS = 48
"""Combinations of the log's own segment keys; each has its sums for every setting and K."""
SETTING_KEYS = ("method", "drafter")
"""What tells the settings apart, and is never given up for want of memory."""
LENGTH_KEYS = ("prompt_length", "output_length")
_BATCH_TOKENS = 1 << 19
_BATCH_ANSWERS = 4096
_BATCH_BYTES = 1 << 28
"""The sums of a batch, for every setting and K."""
_SEGMENT_BYTES = 1 << 32
"""The sums of all segments, which keep a row each for some hundred clusters of answers."""

Reading = LoggedAnswer | NoMetrics | BadRecord
Rows = list[FloatArray]
"""The sums of a batch for each K, [N, columns of K]."""


@dataclass(slots=True)
class Facts:
    """What a replay noticed besides its sums.

    `answers` were replayed, of `tokens` output tokens in all. Of them `retokenized` were logged as
    text, and `without_end` do not tell how long they could have become. `unsorted` have a time
    before that of an answer above them, the first of them at `first_unsorted`.
    """

    answers: int = 0
    tokens: int = 0
    retokenized: int = 0
    without_end: int = 0
    unsorted: int = 0
    first_unsorted: Place | None = None

    def add(self, other: "Facts") -> None:
        """Take in what was noticed of another part; its times are compared within it alone."""
        self.answers += other.answers
        self.tokens += other.tokens
        self.retokenized += other.retokenized
        self.without_end += other.without_end
        self.unsorted += other.unsorted
        self.first_unsorted = self.first_unsorted or other.first_unsorted


def collector_of(
    settings: Sequence[LookupSetting], ks: Sequence[int], by: Sequence[str]
) -> Collector:
    """Return what gathers a replay: `by` are the keys asked for, none for the log's own."""
    names = dict.fromkeys((*by, *SETTING_KEYS)) if by else ()
    fitting = _SEGMENT_BYTES // (MOST_CLUSTERS * _answer_bytes(settings, ks))
    return Collector(
        [*names],
        most_cells=min(MOST_SEGMENTS, fitting) * len(settings) * len(ks),
        essential=frozenset(SETTING_KEYS),
    )


def _answer_bytes(settings: Sequence[LookupSetting], ks: Sequence[int]) -> int:
    """What the sums of one answer take, for every setting and K."""
    return len(settings) * sum(8 * columns_of(k).width for k in ks)


class Replay:
    """Replays a log through settings at several K, in bounded memory.

    `by` are segment keys as in `Collector`; without any, the log's own tags are, or the length of
    the prompt where an answer has none. `jobs` threads share the work; the sums are the same for
    any number of them.
    """

    def __init__(
        self, settings: Sequence[LookupSetting], ks: Sequence[int], *, by: Sequence[str], jobs: int
    ) -> None:
        self.facts = Facts()
        self._settings = tuple(settings)
        self._passes = [each.start() for each in settings]
        self._ks = tuple(ks)
        self._by = tuple(by)
        fitting = _BATCH_BYTES // _answer_bytes(settings, ks)
        self._batch_answers = max(1, min(_BATCH_ANSWERS, fitting))
        self._collector = collector_of(self._settings, self._ks, self._by)
        self._jobs = jobs
        self._pool = ThreadPoolExecutor(jobs)
        self._waiting: list[LoggedAnswer] = []
        self._waiting_tokens = 0
        self._pending: _Pending | None = None
        self._latest_s = -np.inf

    def add(self, place: Place, reading: Reading) -> None:
        """Take the next answer of the log, or the reason that there is none."""
        if not isinstance(reading, LoggedAnswer):
            self._collector.add(place, reading)
            return
        self._take_note(place, reading)
        self._waiting.append(reading)
        self._waiting_tokens += len(reading.prompt) + len(reading.completion)
        if self._waiting_tokens >= _BATCH_TOKENS or len(self._waiting) == self._batch_answers:
            self._start()

    def finish(self) -> Collection:
        """Return the sums of all that was added, one cell per setting, K and segment."""
        self._start()
        self._settle()
        self._pool.shutdown()
        return self._collector.finish()

    def _take_note(self, place: Place, answer: LoggedAnswer) -> None:
        facts = self.facts
        facts.answers += 1
        facts.tokens += len(answer.completion)
        facts.retokenized += answer.retokenized
        facts.without_end += answer.max_tokens is None
        if answer.timestamp_s is None:
            return
        if answer.timestamp_s < self._latest_s:
            facts.unsorted += 1
            facts.first_unsorted = facts.first_unsorted or place
        self._latest_s = max(self._latest_s, answer.timestamp_s)

    def _start(self) -> None:
        """Let the threads begin with what waits, once they are done with what came before."""
        answers, self._waiting, self._waiting_tokens = self._waiting, [], 0
        self._settle()
        if not answers:
            return
        whole = [answers]
        shares = [list(part) for part in _shares(answers, self._jobs)]
        self._pending = _Pending(
            answers,
            [
                [
                    self._pool.submit(_rows_of, lookup, self._ks, part)
                    for part in (whole if lookup.ordered else shares)
                ]
                for lookup in self._passes
            ],
        )

    def _settle(self) -> None:
        pending, self._pending = self._pending, None
        if pending is None:
            return
        groups, members = self._segments(pending.answers)
        names = [each.cluster for each in pending.answers]
        keys = [*dict.fromkeys(name for group in groups for name in group), *SETTING_KEYS]
        collection = Collection(keys=keys, told_keys={*keys})
        collection.read = collection.used = len(pending.answers)
        for setting, parts in zip(self._settings, pending.futures, strict=True):
            of_parts = [part.result() for part in parts]
            for place, k in enumerate(self._ks):
                rows = np.concatenate([part[place] for part in of_parts])
                for told, where in zip(groups, members, strict=True):
                    values = {**told, "method": setting.method, "drafter": setting.name}
                    key: CellKey = (Scope.REQUEST, ENGINE, k, tuple(map(values.get, keys)))
                    clusters = [names[each] for each in where]
                    collection.cells[key] = Totals.empty(k).with_rows(rows[where], clusters)
        self._collector.merge(collection)

    def _segments(
        self, answers: Sequence[LoggedAnswer]
    ) -> tuple[list[dict[str, SegmentValue]], list[list[int]]]:
        """Return the values of each segment among the answers, and the places of its members."""
        members: dict[tuple[tuple[str, SegmentValue], ...], list[int]] = {}
        for place, answer in enumerate(answers):
            members.setdefault(self._values(answer), []).append(place)
        return [dict(values) for values in members], [*members.values()]

    def _values(self, answer: LoggedAnswer) -> tuple[tuple[str, SegmentValue], ...]:
        values = segment_values(
            AcceptanceRecord(
                engine=ENGINE,
                prompt_tokens=len(answer.prompt),
                completion_tokens=len(answer.completion),
                tags=answer.tags,
            )
        )
        lengths = {name: values.pop(name) for name in LENGTH_KEYS}
        wanted = self._by or (() if values else LENGTH_KEYS[:1])
        values |= {name: lengths[name] for name in wanted if name in lengths}
        return tuple(sorted(values.items()))


@dataclass(frozen=True, slots=True)
class _Pending:
    """Answers at work: for each setting the rows of its parts, in the answers' order."""

    answers: list[LoggedAnswer]
    futures: list[list[Future[Rows]]]


def _shares(answers: Sequence[LoggedAnswer], jobs: int) -> Iterable[Sequence[LoggedAnswer]]:
    edges = np.linspace(0, len(answers), min(jobs, len(answers)) + 1).astype(int).tolist()
    return (answers[low:high] for low, high in pairwise(edges))


def _rows_of(lookup: LookupPass, ks: tuple[int, ...], answers: Sequence[LoggedAnswer]) -> Rows:
    batch = AnswerBatch.of(answers)
    runs = lookup.runs(batch, ks)
    return [sums_of(batch, tally(batch, runs, place, k)) for place, k in enumerate(ks)]
