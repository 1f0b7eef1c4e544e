"""Gathers readings into the sums of every combination of segment keys, in bounded memory."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from hashlib import blake2b
from itertools import islice
from typing import TypeAlias

import numpy as np

from outrider.acceptance.totals import Totals
from outrider.records.batch import RecordBatch
from outrider.records.cadence import longest_gap_ms
from outrider.records.reading import (
    AcceptanceRecord,
    BadRecord,
    InvalidRecord,
    NoMetrics,
    Place,
    Reading,
    Scope,
)
from outrider.records.segment_keys import (
    IDENTITY_KEYS,
    WARNING_KEYS,
    SegmentValue,
    segment_values,
)
from outrider.records.tabulate import rows_of, tabulate
from outrider.records.validation import validated

MOST_LISTED = 20
"""Bad records that are listed with their place; the others are counted."""
MOST_VALUES = 64
"""A key with more different values is no segment key, unless it was asked for."""
MOST_ASKED_VALUES = 512
MOST_CELLS = 1024
_FLUSH = 4096
MOST_IDS = 1_000_000
"""How many answers are remembered by their id, to notice when one is read twice."""

_ALWAYS_KEPT = frozenset((*IDENTITY_KEYS, *WARNING_KEYS))

CellKey: TypeAlias = tuple[Scope, str, int, tuple[SegmentValue, ...]]
"""Scope, engine, K (0: unknown), and the values of the collection's keys in their order."""


@dataclass(slots=True)
class Collection:
    """What was read, counted and added up.

    `keys` name the values of each cell of `cells`. `dropped_keys` had too many values to make
    segments by, `told_keys` are all that any record brought. `snapshots` hold the latest state of
    counters, which `settled` adds to the cells. `ids` are marks of the answers and partial reports
    that were read, so that none counts twice, up to `MOST_IDS`. `bad` lists the first bad records.
    All of it merges with another collection.
    """

    keys: list[str] = field(default_factory=list)
    cells: dict[CellKey, Totals] = field(default_factory=dict)
    dropped_keys: set[str] = field(default_factory=set)
    read: int = 0
    used: int = 0
    no_metrics: Counter[str] = field(default_factory=Counter)
    told_keys: set[str] = field(default_factory=set)
    snapshots: dict[str, AcceptanceRecord] = field(default_factory=dict)
    ids: set[bytes] = field(default_factory=set)
    bad_count: int = 0
    bad: list[tuple[Place, str]] = field(default_factory=list)


class Collector:
    """Adds readings to a collection.

    `by` are the keys that the user asked for, and then only these are kept besides those that no
    segment mixes; without any, every key that records bring is kept as long as it has few values.
    A second record with the id of an earlier one is bad, and of several states of the same counters
    only the last counts. Beyond `most_cells` keys are given up, those with the most values first
    and those that identify last, but for the `essential` ones.
    """

    def __init__(
        self,
        by: Sequence[str] = (),
        *,
        most_cells: int = MOST_CELLS,
        essential: frozenset[str] = frozenset(),
    ) -> None:
        self._most_cells = most_cells
        self._essential = essential
        self.collection = Collection(keys=list(by))
        self._asked = frozenset(by)
        self._known = set(by)
        self._values: dict[str, set[SegmentValue]] = {name: {None} for name in by}
        self._buffers: dict[CellKey, list[AcceptanceRecord]] = {}
        # What records are alike in decides their cell; millions need not work it out anew.
        self._buffer_of: dict[tuple[object, ...], list[AcceptanceRecord]] = {}
        self._buffered = 0

    def add(self, place: Place, reading: Reading | RecordBatch | Collection) -> None:
        """Count one reading, or merge what another collector has gathered."""
        collection = self.collection
        if isinstance(reading, RecordBatch):
            self._add_batch(place.source, reading)
            return
        if isinstance(reading, Collection):
            self._add_collection(place, reading)
            return
        collection.read += 1
        if isinstance(reading, NoMetrics):
            collection.no_metrics[reading.reason] += 1
            return
        if isinstance(reading, BadRecord):
            self._list_bad(place, reading.reason)
            return
        try:
            record = validated(reading)
        except InvalidRecord as error:
            self._list_bad(place, str(error))
            return
        if record.id is not None and self._seen_before(record.id):
            self._list_bad(place, f"the answer {record.id} was read before")
        elif record.snapshot is not None:
            self._keep_latest(record.snapshot, record)
        else:
            self.count(record)

    def _add_collection(self, place: Place, other: Collection) -> None:
        if known := len(self.collection.ids & other.ids):
            self.collection.read += 1
            # Sums cannot be taken apart again.
            reason = f"{known:,} of its answers were read before, so that none of it is counted"
            self._list_bad(place, reason)
        else:
            self.merge(other)

    def _add_batch(self, source: str, batch: RecordBatch) -> None:
        self.collection.read += len(batch.ids)
        new = np.ones(len(batch.ids), dtype=bool)
        for place, identity in enumerate(batch.ids):
            if self._seen_before(identity):
                new[place] = False
                where = Place(source, batch.lines[place])
                self._list_bad(where, f"the answer {identity} was read before")
        self.collection.used += int(new.sum())
        rows = rows_of(batch.numbers)
        for example in batch.examples:
            self._cell_of(example)  # takes up its keys, which makes the cells of the others longer
        cells: dict[CellKey, int] = {}
        of_kind = [
            cells.setdefault(self._cell_of(example), len(cells)) for example in batch.examples
        ]
        cell_of = np.where(new, np.array(of_kind)[batch.kinds], -1)
        for key, cell in cells.items():
            self._add_cell(key, Totals.empty(batch.numbers.k).with_rows(rows[cell_of == cell]))
        # Before any key is given up: what is buffered still has it.
        self._flush()

    def finish(self) -> Collection:
        """Return the collection with everything that was added."""
        self._flush()
        return self.collection

    def merge(self, other: Collection) -> None:
        """Add what another collector has gathered, which has no answer in common with this one."""
        mine = self.collection
        mine.read += other.read
        mine.used += other.used - len(other.snapshots)
        mine.no_metrics.update(other.no_metrics)
        mine.told_keys |= other.told_keys
        mine.ids.update(islice(other.ids, max(0, MOST_IDS - len(mine.ids))))
        mine.bad_count += other.bad_count
        mine.bad.extend(other.bad[: MOST_LISTED - len(mine.bad)])
        self._flush()
        for name in other.dropped_keys:
            self._drop(name)
        places = [name for name in other.keys if name not in mine.dropped_keys]
        self._learn(places)
        for (scope, engine, k, values), totals in other.cells.items():
            told = dict(zip(other.keys, values, strict=True))
            key = (scope, engine, k, tuple(told.get(name) for name in mine.keys))
            self._add_cell(key, totals)
        for snapshot, record in other.snapshots.items():
            self._keep_latest(snapshot, record)
        self._limit()

    def count(self, record: AcceptanceRecord) -> None:
        """Count a record that is known to be valid and new."""
        prompt, output = record.prompt_tokens, record.completion_tokens
        alike = (
            record.scope,
            record.engine,
            record.k,
            record.requests,
            -1 if prompt is None else prompt.bit_length(),
            -1 if output is None else output.bit_length(),
            *record.tags.items(),
        )
        buffer = self._buffer_of.get(alike)
        if buffer is None:
            key = self._cell_of(record)
            buffer = self._buffer_of[alike] = self._buffers.setdefault(key, [])
        buffer.append(record)
        self.collection.used += 1
        self._buffered += 1
        if self._buffered >= _FLUSH:
            self._flush()

    def _cell_of(self, record: AcceptanceRecord) -> CellKey:
        values = segment_values(record)
        self.collection.told_keys.update(values)
        self._learn(values)
        return (
            record.scope,
            record.engine,
            record.k or 0,
            tuple([values.get(name) for name in self.collection.keys]),
        )

    def _learn(self, names: Iterable[str]) -> None:
        """Take up keys that no record had so far; where the user asked for keys, none."""
        new = [name for name in names if name not in self._known]
        self._known.update(new)
        if self._asked:
            new = [name for name in new if name in _ALWAYS_KEPT]
        if not new:
            return
        collection = self.collection
        for name in new:
            collection.keys.append(name)
            self._values[name] = {None} if collection.cells or self._buffers else set()
        blank = (None,) * len(new)
        collection.cells = {
            (scope, engine, k, values + blank): totals
            for (scope, engine, k, values), totals in collection.cells.items()
        }
        self._buffers = {
            (scope, engine, k, values + blank): records
            for (scope, engine, k, values), records in self._buffers.items()
        }

    def _flush(self) -> None:
        for key, records in self._buffers.items():
            k = key[2]
            clusters = [record.cluster for record in records]
            longest = longest_gap_ms(record.cadence for record in records)
            rows = tabulate(records, k)
            self._add_cell(key, Totals.empty(k).with_rows(rows, clusters, longest))
        self._buffers.clear()
        self._buffer_of.clear()
        self._buffered = 0
        self._limit()

    def _add_cell(self, key: CellKey, totals: Totals) -> None:
        cells = self.collection.cells
        there = cells.get(key)
        if there is None:
            for name, value in zip(self.collection.keys, key[3], strict=True):
                self._values[name].add(value)
            cells[key] = totals
        else:
            cells[key] = there.merged(totals)

    def _limit(self) -> None:
        for name in [*self.collection.keys]:
            most = MOST_ASKED_VALUES if name in self._asked else MOST_VALUES
            if len(self._values[name]) > most:
                self._drop(name)
        while len(self.collection.cells) > self._most_cells:
            droppable = [each for each in self.collection.keys if each not in self._essential]
            if not droppable:
                return
            self._drop(max(droppable, key=self._dispensable))

    def _dispensable(self, name: str) -> tuple[bool, int]:
        # Records that differ in what identifies them are never added as long as that can be helped.
        return name not in IDENTITY_KEYS, len(self._values[name])

    def _drop(self, name: str) -> None:
        """Give up a key: the cells that only it told apart become one."""
        collection = self.collection
        collection.dropped_keys.add(name)
        self._known.add(name)
        if name not in collection.keys:
            return
        place = collection.keys.index(name)
        del collection.keys[place], self._values[name]
        cells, collection.cells = collection.cells, {}
        for (scope, engine, k, values), totals in cells.items():
            self._add_cell((scope, engine, k, values[:place] + values[place + 1 :]), totals)

    def _seen_before(self, identity: str) -> bool:
        # Not Python's own hash, which differs from process to process.
        mark = mark_of(identity.encode("utf-8", "surrogatepass"))
        ids = self.collection.ids
        if mark in ids:
            return True
        if len(ids) < MOST_IDS:
            ids.add(mark)
        return False

    def _keep_latest(self, snapshot: str, record: AcceptanceRecord) -> None:
        there = self.collection.snapshots.get(snapshot)
        if there is None:
            self.collection.used += 1
            self.collection.told_keys.update(segment_values(record))
        else:
            self.collection.no_metrics["an earlier state of the same counters"] += 1
        if there is None or (record.steps or 0) >= (there.steps or 0):
            self.collection.snapshots[snapshot] = record

    def _list_bad(self, place: Place, reason: str) -> None:
        self.collection.bad_count += 1
        if len(self.collection.bad) < MOST_LISTED:
            self.collection.bad.append((place, reason))


def settled(collection: Collection) -> Collection:
    """Return the collection with its snapshots counted, once nothing more is to be merged."""
    collector = Collector(collection.keys)
    used = collection.used - len(collection.snapshots)
    collector.merge(replace(collection, snapshots={}, used=used))
    for record in collection.snapshots.values():
        collector.count(record)
    return collector.finish()


def mark_of(content: bytes) -> bytes:
    """Return 8 bytes that are as good as never those of another content, in any process."""
    return blake2b(content, digest_size=8).digest()
