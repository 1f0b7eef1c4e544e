"""One segment held against one expected figure: what every possible cause is judged by."""

from dataclasses import dataclass

from outrider.acceptance.expectation import ExpectedMean, MeanAtK, Outcome
from outrider.report.acceptance.document import SegmentReport
from outrider.report.acceptance.expected.asked import Figure
from outrider.report.acceptance.expected.conditions import CONDITIONS, OTHER_NAMES, bare
from outrider.report.acceptance.expected.expectation import Status

_ENDS_IN_NAMES = frozenset(
    ("model", "drafter", "engine", "dataset", "method", "quantisation", "draft_quantisation")
)


@dataclass(frozen=True, slots=True)
class Case:
    """A segment, the parts of the whole report, and the figure that was expected.

    `expected` is the figure, cut to the segment's K where the figure's own positions are known.
    `here` is what M could be at the K of `expected`.
    """

    segment: SegmentReport
    parts: tuple[SegmentReport, ...]
    figure: Figure
    expected: ExpectedMean
    here: MeanAtK
    outcome: Outcome

    @property
    def m(self) -> float:
        """The measured M."""
        value = self.segment.figures.mean_acceptance_length.value
        assert value is not None
        return value


def hold(case: Case, name: str) -> tuple[Status, str]:
    """Return whether a condition is the same on both sides, and say so."""
    words = CONDITIONS[name].words
    there = case.figure.conditions.get(name)
    here = values_of(case.segment, name)
    if not there and not here:
        return "not told", f"{words}: told by neither side"
    if not here:
        lost = "not kept with --by" if here == () else "not told"
        return "not told", f"{words}: expected {_listed(there or ())}, here {lost}"
    if not there:
        return "not told", f"{words}: expected not told, here {_listed(here)}"
    if _forms(name, there) == _forms(name, here):
        return "same", f"{words}: {_listed(here)}"
    return "differs", f"{words}: expected {_listed(there)}, here {_listed(here)}"


def values_of(segment: SegmentReport, name: str) -> tuple[str, ...] | None:
    """Return the values that a segment's records tell, () where --by lost them, None if none."""
    spellings = (name, *(other for other, key in OTHER_NAMES.items() if key == name))
    for key in spellings:
        if segment.values.get(key) is not None:
            return (str(segment.values[key]),)
        if key in segment.also:
            return tuple(str(value) for value in segment.also[key] if value is not None)
    return None


def worst(found: list[tuple[Status, str]]) -> tuple[Status, str]:
    """Return the findings on several conditions as one: a difference before what is not told."""
    order: tuple[Status, ...] = ("differs", "not told", "ruled out", "same")
    status = min((each for each, _ in found), key=order.index)
    told = [text for each, text in found if not text.endswith("told by neither side")]
    return status, "; ".join(told) or "told by neither side"


def _forms(name: str, values: tuple[str, ...]) -> set[str]:
    return {bare(value) for value in values} if name in _ENDS_IN_NAMES else set(values)


def _listed(values: tuple[str, ...]) -> str:
    return " and ".join(values[:4]) + (f" and {len(values) - 4} more" if len(values) > 4 else "")  # noqa: PLR2004
