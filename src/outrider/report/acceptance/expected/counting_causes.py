"""Causes in how tokens and steps are counted."""

from collections.abc import Iterator

from outrider.acceptance.expectation import SAME_FIGURE, counted_differently, other_counts
from outrider.records.reading import Scope
from outrider.report.acceptance.expected.case import Case
from outrider.report.acceptance.expected.expectation import Cause

_LOOK_UP = (
    "look up how the figure is defined: with or without the target's own token, over steps or"
    " requests, counted or computed from a rate"
)
_WITH_WARM_UP = (Scope.SERVER.value, Scope.LOG.value, Scope.INTERVAL.value)


def counting(case: Case) -> Cause:
    """What one source calls acceptance length another calls by other names."""
    figures = case.segment.figures
    if case.figure.stored:
        return Cause("counting", "same", "both are 1 + A/S of an outrider report")
    if case.here.k != figures.k:
        return _at_another_k(case)
    if (other := counted_differently(figures, case.expected)) is not None:
        told = (
            "so the figure may be worked out by a formula, not measured"
            if other.formula
            else "so the two probably count differently"
        )
        detail = (
            f"{other.name}: {other.value:.2f} here, which agrees with the expected"
            f" {case.expected.value:.4g}, {told}; M here is 1 + A/S = {case.m:.2f}"
        )
        return Cause("counting", "differs", detail, _LOOK_UP)
    tried = f"no other usual definition gives it: {_tried(case)}"
    doubts = "; ".join(_doubts(case))
    if not doubts:
        return Cause("counting", "ruled out", tried)
    return Cause(
        "counting",
        "not told",
        f"{tried}. But {doubts}",
        "count on single answers, after warm-up: give a file of answers instead, or --before and"
        " --after around the run",
    )


def _at_another_k(case: Case) -> Cause:
    low, high, value = case.here.low - 1, case.here.high - 1, case.expected.value
    share = 1 + SAME_FIGURE
    given = f"{low:.2f}" if low == high else f"{low:.2f} to {high:.2f}"
    bare = f"without the target's own token (A/S) these steps give {given} at K = {case.here.k}"
    if low / share <= value <= high * share:
        detail = f"{bare}, which agrees with the expected {value:.4g}: it may count that way"
        return Cause("counting", "differs", detail, _LOOK_UP)
    return Cause("counting", "not told", f"{bare}; the rest can only be tried at one K", _LOOK_UP)


def _tried(case: Case) -> str:
    counts = other_counts(case.segment.figures)
    measured = [f"{each.name.partition(',')[0]} {each.value:.2f}" for each in counts]
    formulas = [each.value for each in counts if each.formula]
    if not formulas:
        return ", ".join(measured)
    del measured[len(measured) - len(formulas) :]
    ends = f"{min(formulas):.2f} to {max(formulas):.2f}"
    return ", ".join([*measured, f"formulas that take one chance for all positions {ends}"])


def _doubts(case: Case) -> Iterator[str]:
    figures = case.segment.figures
    if figures.steps_estimated or figures.accepted_estimated:
        yield "M here is an estimate, as steps or accepted tokens were not counted"
    if figures.drafted_nominal:
        yield "D here is nominal (K · S), so that A/D is a lower bound"
    if case.segment.values.get("scope") in _WITH_WARM_UP:
        yield "counters of a server also hold warm-up and the requests of others"
