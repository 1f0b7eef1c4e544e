"""Which cells of a collection make one segment, and whether all of them may be added."""

from collections.abc import Iterable, Sequence

from outrider.acceptance.totals import Totals
from outrider.records.collecting import CellKey, Collection
from outrider.records.reading import Scope
from outrider.records.segment_keys import BASE_KEYS, IDENTITY_KEYS, SegmentValue

SegmentKey = tuple[tuple[str, SegmentValue], ...]
"""The names and values of a segment, base keys first."""


class Grouping:
    """The cells of a collection as segments of any choice of keys."""

    def __init__(self, collection: Collection) -> None:
        self.keys = tuple(collection.keys)
        self._cells = collection.cells
        self._lost = collection.told_keys - {*self.keys, *BASE_KEYS}

    @property
    def identity(self) -> tuple[str, ...]:
        """The keys that no segment mixes, besides the base keys."""
        return tuple(name for name in IDENTITY_KEYS if name in self.keys)

    def by(self, names: Iterable[str]) -> dict[SegmentKey, Totals]:
        """Return the totals of every combination of base keys, identity and the names given."""
        names = [*self.identity, *(name for name in names if name not in self.identity)]
        places = [self.keys.index(name) for name in names]
        groups: dict[SegmentKey, Totals] = {}
        for key, totals in self._cells.items():
            scope, engine, k, values = key
            base = ((BASE_KEYS[0], scope.value), (BASE_KEYS[1], engine), (BASE_KEYS[2], k or None))
            group = (*base, *zip(names, (values[place] for place in places), strict=True))
            there = groups.get(group)
            groups[group] = totals if there is None else there.merged(totals)
        return dict(sorted(groups.items(), key=_order))

    def within(self, segment: SegmentKey, name: str) -> dict[SegmentValue, Totals]:
        """Return the totals of a segment for each value of one more key."""
        return {
            dict(group)[name]: totals
            for group, totals in self.by([*(n for n, _ in segment if n in self.keys), name]).items()
            if set(segment) <= set(group)
        }

    def shared(self, segment: SegmentKey) -> dict[str, SegmentValue]:
        """Return the keys, besides the segment's own, that have one value in all of it."""
        return {n: values[0] for n, values in self.also(segment).items() if len(values) == 1}

    def also(self, segment: SegmentKey) -> dict[str, tuple[SegmentValue, ...]]:
        """Return the values in a segment of every further key, none for keys that were not kept."""
        wanted = dict(segment)
        found: dict[str, set[SegmentValue]] = {name: set() for name in self.keys}
        for key in self._cells:
            told = self._told(key)
            if all(told.get(name) == value for name, value in wanted.items()):
                for name in self.keys:
                    found[name].add(told[name])
        listed = {
            name: tuple(sorted(values, key=_rank))
            for name, values in found.items()
            if name not in wanted
        }
        return listed | dict.fromkeys(sorted(self._lost), ())

    def _told(self, key: CellKey) -> dict[str, SegmentValue]:
        scope, engine, k, values = key
        base: dict[str, SegmentValue] = {"scope": scope.value, "engine": engine, "k": k or None}
        return {**base, **dict(zip(self.keys, values, strict=True))}


def pooling_refused(segments: Sequence[SegmentKey]) -> str | None:
    """Return why the segments cannot be added, or None where they can.

    >>> pooling_refused([(("scope", "request"), ("engine", "vllm"), ("k", k)) for k in (1, 8)])[:9]
    'K = 1, 8:'
    """
    values = [dict(segment) for segment in segments]

    def several(name: str) -> list[str]:
        return sorted(
            {str(each[name]) for each in values if name in each}, key=lambda v: (len(v), v)
        )

    if len(ks := several("k")) > 1:
        return (
            f"K = {', '.join(ks)}: a larger K offers positions that a smaller one never tries, so a"
            " sum over them would mean nothing"
        )
    if len(scopes := several("scope")) > 1:
        told = ", ".join(_SCOPES[Scope(scope)] for scope in scopes)
        return f"{told}: the same steps may be in more than one of them"
    if len(engines := several("engine")) > 1:
        return f"{', '.join(engines)}: engines differ in what they count as a step"
    for name in IDENTITY_KEYS:
        if len(different := several(name)) > 1:
            return f"{name} {', '.join(different)}: what one accepts says nothing of the other"
    return None


_SCOPES = {
    Scope.REQUEST: "single answers",
    Scope.INTERVAL: "a server between two scrapes",
    Scope.LOG: "a server's log",
    Scope.BENCHMARK: "a benchmark",
    Scope.SERVER: "a server since its start",
}


def _order(item: tuple[SegmentKey, Totals]) -> tuple[tuple[bool, bool, float, str], ...]:
    # Numbers in their order, text in its own, unknown last; "128–511" by the number it begins with.
    return tuple(_rank(value) for _, value in item[0])


def _rank(value: SegmentValue) -> tuple[bool, bool, float, str]:
    if isinstance(value, int):
        return (False, False, value, "")
    digits = "".join(c if c.isdigit() or c == "." else " " for c in value or "").split()
    leading = (value or " ")[0].isdigit()
    number = float(digits[0]) if leading and digits and digits[0].count(".") < 2 else 0.0  # noqa: PLR2004
    return (value is None, not leading, number, value or "")
