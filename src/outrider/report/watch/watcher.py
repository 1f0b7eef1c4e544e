"""Judges windows as they come: segment by segment, alarms, and what else is to be told."""

from collections.abc import Callable, Mapping, Sequence

from outrider.acceptance.alarm_band import Band
from outrider.acceptance.totals import Totals
from outrider.records.collecting import Collection
from outrider.records.segment_keys import IDENTITY_KEYS, SegmentValue
from outrider.records.windows import Window
from outrider.report.acceptance.grouping import Grouping, SegmentKey
from outrider.report.cells import counted
from outrider.report.watch.document import AlarmEvent, SegmentWindow, WatchSummary, WindowReport
from outrider.report.watch.segment import WatchedSegment

MOST_SEGMENTS = 256
SILENT = "nothing came"

BandOf = Callable[[Mapping[str, SegmentValue]], Band | str | None]
"""From the values of a segment to its band: None to learn it, text to say why there is none."""


class Watcher:
    """Takes windows in their order.

    `by` are keys to make segments of besides engine, model and K. A window of fewer than
    `min_steps` steps is not judged, and it takes `confirm` judged ones in a row to raise an alarm
    or clear it. Bands that `band_of` leaves open are learned from `learn` windows.
    """

    def __init__(
        self, band_of: BandOf, *, by: Sequence[str], learn: int, min_steps: int, confirm: int
    ) -> None:
        self._band_of = band_of
        self._by = tuple(by)
        self._learn, self._min_steps, self._confirm = learn, min_steps, confirm
        self._segments: dict[SegmentKey, WatchedSegment] = {}
        self._start_s: float | None = None
        self._end_s: float | None = None
        self._windows = 0
        self._problem: str | None = None
        self._full = False
        self._mixed: set[str] = set()

    def see(self, window: Window) -> WindowReport:
        """Judge one window; segments beyond the first 256 are told of and not watched."""
        self._start_s = window.start_s if self._start_s is None else self._start_s
        self._end_s = window.end_s
        self._windows += 1
        notices = [*self._of_source(window)]
        groups = self._groups(window.collection)
        notices += self._left_out(groups)
        begun = [(key, self._begin(key)) for key in groups if self._is_new(key)]
        names = self._names()
        notices += [f"{names[key]}: {band}" for key, band in begun if isinstance(band, str)]
        rows: list[SegmentWindow] = []
        events: list[AlarmEvent] = []
        if window.problem is None:
            for key, segment in self._segments.items():
                name = names[key]
                row, event, told = segment.see(groups.get(key), window.end_s, name)
                rows.append(row)
                events += [event] if event else []
                notices += [f"{name}: {told}"] if told else []
        return WindowReport(
            start_s=window.start_s,
            end_s=window.end_s,
            notices=tuple(notices),
            rows=tuple(rows),
            nothing=window.problem or (None if rows else _why_nothing(window.collection)),
            reached=window.problem is None,
            events=tuple(events),
        )

    def summary(self) -> WatchSummary:
        """Return what all windows came to."""
        names = self._names()
        return WatchSummary(
            start_s=self._start_s,
            end_s=self._end_s,
            windows=self._windows,
            segments=tuple(segment.summary(names[key]) for key, segment in self._segments.items()),
        )

    def _left_out(self, groups: Mapping[SegmentKey, Totals]) -> list[str]:
        """Say once that there are more segments than are watched."""
        if self._full or len(self._segments.keys() | groups.keys()) <= MOST_SEGMENTS:
            return []
        self._full = True
        return [
            f"only the first {MOST_SEGMENTS} segments are watched; choose a --by with fewer values"
        ]

    def _is_new(self, key: SegmentKey) -> bool:
        return key not in self._segments and len(self._segments) < MOST_SEGMENTS

    def _begin(self, key: SegmentKey) -> Band | str | None:
        values = dict(key)
        self._segments[key] = WatchedSegment(
            values,
            band := self._band_of(values),
            learn=self._learn,
            min_steps=self._min_steps,
            confirm=self._confirm,
        )
        return band

    def _groups(self, collection: Collection) -> dict[SegmentKey, Totals]:
        if not collection.cells:
            return {}
        grouping = Grouping(collection)
        there = [name for name in self._by if name in grouping.keys]
        # Every identity key is in every key: a window that lacks one is of the same segment.
        groups: dict[SegmentKey, Totals] = {}
        for key, totals in grouping.by(there).items():
            told = dict(key)
            names = dict.fromkeys(("scope", "engine", "k", *IDENTITY_KEYS, *self._by))
            full = tuple((name, told.get(name)) for name in names)
            groups[full] = totals
        return groups

    def _names(self) -> dict[SegmentKey, str]:
        """Name each by what was asked for, what tells segments of different models apart, and K."""
        all_values = [segment.values for segment in self._segments.values()]
        telling = [
            *(name for name in self._by if name != "k"),
            *(
                name
                for name in ("engine", *IDENTITY_KEYS)
                if len({values[name] for values in all_values}) > 1
            ),
        ]
        shown = tuple(dict.fromkeys(telling))
        return {key: _named(segment.values, shown) for key, segment in self._segments.items()}

    def _of_source(self, window: Window) -> list[str]:
        """Say when a source begins to fail, and when it no longer does."""
        was, self._problem = self._problem, window.problem
        if window.problem is not None:
            return [] if was is not None else [f"unreachable: {window.problem}"]
        notices = [] if was is None else ["reachable again; the window covers the time without it"]
        if "yes" in _values_of(window.collection, "counters_reset"):
            notices.append("the counters began anew: the server restarted")
        mixed = self._mixed | window.collection.dropped_keys & {*IDENTITY_KEYS}
        notices += [f"too many values of {each}: watched as one" for each in mixed - self._mixed]
        self._mixed = mixed
        if window.collection.bad:
            place, reason = window.collection.bad[0]
            where = "" if place.line is None else f"line {place.line}: "
            notices.append(f"{counted(window.collection.bad_count, 'bad record')}, {where}{reason}")
        return notices


def _named(values: Mapping[str, SegmentValue], shown: Sequence[str]) -> str:
    parts = [
        f"{name.replace('_', ' ')} {'unknown' if values[name] is None else values[name]}"
        for name in shown
    ]
    k = values["k"]
    return ", ".join([*parts, "K unknown" if k is None else f"K = {k}"])


def _values_of(collection: Collection, name: str) -> set[SegmentValue]:
    if name not in collection.keys:
        return set()
    place = collection.keys.index(name)
    return {values[place] for *_, values in collection.cells}


def _why_nothing(collection: Collection) -> str:
    reasons = [f"{count:,} × {reason}" for reason, count in collection.no_metrics.most_common(2)]
    return "; ".join(reasons) or SILENT
