"""The report in a sentence or two."""

from collections.abc import Sequence

from outrider.records.reading import Scope
from outrider.report.acceptance.document import RecordCounts, SegmentReport, Split
from outrider.report.cells import counted


def verdict(
    whole: Sequence[SegmentReport],
    segments: Sequence[SegmentReport],
    split: Split | None,
    records: RecordCounts,
) -> str:
    """Say what the largest segment comes to, what sets its parts apart, and what K it asks for."""
    if not whole:
        return "Nothing that was read says anything of speculation."
    if records.verdict_withheld:
        return (
            f"No verdict: {records.bad_count:,} of {counted(records.read, 'record')} were bad, more"
            " than 5 %, so the rest may not be what was meant to be read."
        )
    # Answers tell more than counters, which also hold those of other clients.
    largest = max(
        whole,
        key=lambda segment: (segment.values["scope"] == Scope.REQUEST, segment.figures.steps),
    )
    sentences = [_acceptance(largest, several=len(whole) > 1)]
    if split and split.key:
        sentences.append(_parts(split.key, segments))
    if (choice := largest.draft_length) is not None:
        sentences.append(_worth(choice.best_k, segments, whole))
    return " ".join(sentences)


_RECORDS = {
    Scope.REQUEST.value: "record",
    Scope.INTERVAL.value: "interval",
    Scope.LOG.value: "log interval",
    Scope.BENCHMARK.value: "benchmark",
    Scope.SERVER.value: "server",
}


def _acceptance(segment: SegmentReport, *, several: bool) -> str:
    figures = segment.figures
    where = f"{segment.name}: " if several or figures.k is None else f"K = {figures.k}: "
    m = figures.mean_acceptance_length
    if m.value is None:
        return f"{where}no verification step was counted ({m.reason})."
    interval = (
        f"95 % interval {m.interval.low:.2f}–{m.interval.high:.2f}" if m.interval else "no interval"
    )
    n = (
        counted(figures.records, _RECORDS[str(segment.values["scope"])])
        if figures.requests is None
        else counted(figures.requests, "answer")
    )
    about = "about " if figures.steps_estimated or figures.accepted_estimated else ""
    text = f"{where}{about}{m.value:.2f} tokens per verification step ({interval}, {n})"
    rate = figures.draft_acceptance_rate.value
    if rate is not None:
        text += f"; {100 * rate:.1f} % of the drafted tokens were accepted"
    return f"{text}."


def _worth(best_k: int, segments: Sequence[SegmentReport], whole: Sequence[SegmentReport]) -> str:
    found = (
        "At this step cost speculation does not pay: K = 0, off, is best"
        if best_k == 0
        else f"At this step cost K = {best_k} is best"
    )
    parts = [] if segments == whole else [each for each in segments if each.draft_length]
    ks = {each.draft_length.best_k for each in parts if each.draft_length}
    if ks <= {best_k}:
        return f"{found}."
    listed = ", ".join(str(k) for k in sorted(ks))
    return f"{found} for all together, and K = {listed} by segment."


def _parts(key: str, segments: Sequence[SegmentReport]) -> str:
    known = [
        (each.values.get(key), each.figures.mean_acceptance_length.value)
        for each in segments
        if each.figures.mean_acceptance_length.value is not None and each.values.get(key)
    ]
    known.sort(key=lambda pair: -(pair[1] or 0))
    if len(known) < 2:  # noqa: PLR2004
        return ""
    (high, most), (low, least) = known[0], known[-1]
    name = key.replace("_", " ")
    return f"It depends on the {name}: from {least:.2f} for {low} to {most:.2f} for {high}."
