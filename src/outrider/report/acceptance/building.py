"""Builds the acceptance report from what was collected."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from outrider.acceptance.draft_length import DraftLengthChoice, choose_draft_length
from outrider.acceptance.figures import segment_figures
from outrider.acceptance.flags import find_flags
from outrider.acceptance.reconciliation import reconcile
from outrider.acceptance.step_cost import StepCost
from outrider.acceptance.totals import Totals
from outrider.records.collecting import Collection, settled
from outrider.records.reading import Scope
from outrider.records.segment_keys import BASE_KEYS, IDENTITY_KEYS, WARNING_KEYS, SegmentValue
from outrider.report.acceptance.definitions import DEFINITIONS
from outrider.report.acceptance.document import (
    AcceptanceReport,
    BadRecordEntry,
    RecordCounts,
    SegmentReport,
    Split,
)
from outrider.report.acceptance.grouping import Grouping, SegmentKey, pooling_refused
from outrider.report.acceptance.splitting import find_split
from outrider.report.acceptance.verdict import verdict

MOST_BAD = 0.05
"""The share of bad records above which the rest may not be what was meant to be read."""

SAME_CACHING = 0.02
"""Shares of cached prompt tokens that differ by no more can be compared."""
WRONG_VALUES = frozenset(("yes", "several tokens"))
"""The values of the warning keys that a flag is raised for."""

_UNITS = {
    Scope.REQUEST: "requests",
    Scope.INTERVAL: "intervals",
    Scope.LOG: "intervals",
    Scope.BENCHMARK: "benchmarks",
    Scope.SERVER: "servers",
}


@dataclass(frozen=True, slots=True)
class _Builder:
    grouping: Grouping
    step_cost: StepCost | None
    step_cost_text: str | None
    seed: int

    def segments(
        self, groups: Mapping[SegmentKey, Totals], named_by: Sequence[str]
    ) -> Iterator[SegmentReport]:
        telling = [*named_by, *_telling_apart(list(groups))]
        for key, totals in groups.items():
            yield self.segment(key, totals, _name(dict(key), telling, named_by))

    def segment(self, key: SegmentKey, totals: Totals, name: str) -> SegmentReport:
        values = dict(key)
        shared = self.grouping.shared(key)
        # A generator of its own: a segment's intervals must not depend on the others.
        rng = np.random.default_rng(self.seed)
        unit = _UNITS[Scope(str(values["scope"]))]
        figures = segment_figures(totals, rng=rng, unit=unit)
        choice, reason = self._draft_length(totals, unit)
        tags = {n: str(v) for n, v in {**shared, **values}.items() if v is not None}
        for warning in WARNING_KEYS:
            # What is wrong in a part is wrong in the sum.
            if warning in self.grouping.keys:
                for value in WRONG_VALUES & self.grouping.within(key, warning).keys():
                    tags[warning] = str(value)
        return SegmentReport(
            name=name,
            values=values,
            figures=figures,
            flags=find_flags(figures, totals, tags=tags),
            reconciliation=reconcile(totals, figures),
            draft_length=choice,
            draft_length_reason=reason,
            also=self.grouping.also(key),
        )

    def _draft_length(
        self, totals: Totals, unit: str
    ) -> tuple[DraftLengthChoice | None, str | None]:
        if self.step_cost is None:
            return None, "give --step-cost to learn what each K is worth"
        try:
            rng = np.random.default_rng(self.seed)
            return choose_draft_length(totals, self.step_cost, rng=rng, unit=unit), None
        except ValueError as error:
            return None, str(error)


def build_acceptance_report(
    collection: Collection,
    *,
    sources: Sequence[str],
    by: Sequence[str] = (),
    step_cost: StepCost | None = None,
    step_cost_text: str | None = None,
    seed: int = 0,
) -> AcceptanceReport:
    """Build the report; the same collection and seed always give the same numbers.

    `by` are the keys to make segments of. Without any, the key that explains most of the variation
    between records is found and the report split by it.
    """
    collection = settled(collection)
    grouping = Grouping(collection)
    builder = _Builder(grouping, step_cost, step_cost_text, seed)
    whole = grouping.by(())
    split = None if by else find_split(grouping, whole)
    named_by = [name for name in by if name not in BASE_KEYS] or (
        [split.key] if split and split.key else []
    )
    segments = tuple(builder.segments(grouping.by(named_by), named_by))
    whole_reports = tuple(builder.segments(whole, ())) if named_by else ()
    mixed = [name for name in IDENTITY_KEYS if name in collection.dropped_keys]
    refused = (
        f"more different values of {', '.join(mixed)} than can be told apart"
        if mixed
        else pooling_refused(list(whole))
        if whole
        else "nothing could be read"
    )
    records = _record_counts(collection)
    return AcceptanceReport(
        sources=tuple(sources),
        verdict=f"No verdict: the records have {refused}."
        if mixed
        else verdict(whole_reports or segments, segments, split, records),
        segments=segments,
        whole=whole_reports,
        pooled=None if refused else (whole_reports or segments)[0],
        pooled_refused=refused,
        split=split,
        records=records,
        step_cost=step_cost_text,
        notes=tuple(_notes(collection, whole_reports or segments, split)),
        definitions=DEFINITIONS,
    )


def _record_counts(collection: Collection) -> RecordCounts:
    return RecordCounts(
        read=collection.read,
        used=collection.used,
        no_metrics=dict(collection.no_metrics.most_common()),
        bad_count=collection.bad_count,
        bad=tuple(
            BadRecordEntry(source=place.source, line=place.line, reason=reason)
            for place, reason in collection.bad
        ),
        verdict_withheld=collection.bad_count > MOST_BAD * collection.read,
    )


def _telling_apart(segments: Sequence[SegmentKey]) -> list[str]:
    """Return the base and identity keys in which the segments differ, K always."""
    values = [dict(segment) for segment in segments]
    return [
        name
        for name in (*BASE_KEYS, *IDENTITY_KEYS)
        if name == "k" or len({each.get(name) for each in values}) > 1
    ]


def _name(
    values: Mapping[str, SegmentValue], telling: Sequence[str], named_by: Sequence[str]
) -> str:
    """Return the segment's title, e.g. "kind copy, K = 4"."""
    parts = [
        f"{name.replace('_', ' ')} {'unknown' if values[name] is None else values[name]}"
        for name in dict.fromkeys(telling)
        # That a key is unknown tells apart only where it was asked for.
        if name != "k" and (values.get(name) is not None or name in named_by)
    ]
    k = values["k"]
    return ", ".join([*parts, "K unknown" if k is None else f"K = {k}"])


def _notes(
    collection: Collection, whole: Sequence[SegmentReport], split: Split | None
) -> Iterator[str]:
    if dropped := sorted(collection.dropped_keys):
        yield (
            f"{', '.join(dropped)}: too many different values to make segments by"
            + ("" if split is None else "; not among the keys tried")
        )
    shares = [each.figures.cached_share for each in whole if each.figures.cached_share is not None]
    if shares and max(shares) - min(shares) > SAME_CACHING:
        yield (
            f"{100 * min(shares):.0f} to {100 * max(shares):.0f} % of the prompt tokens were"
            " in the prefix cache: times to the first token cannot be compared between segments."
        )
    by_scope: dict[object, int] = {}
    for segment in whole:
        scope = segment.values["scope"]
        by_scope[scope] = by_scope.get(scope, 0) + segment.figures.steps
    answers = by_scope.get(Scope.REQUEST.value)
    for scope in (Scope.INTERVAL, Scope.LOG, Scope.SERVER):
        served = by_scope.get(scope.value)
        if answers and served and served != answers:
            yield (
                f"The server counted {served:,} steps where the answers tell of {answers:,}: its"
                " counters also cover answers without metrics (n > 1, ended by a stop string,"
                " aborted) and those of other clients."
            )
            return
