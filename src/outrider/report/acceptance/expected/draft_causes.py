"""Causes in K, as far as arithmetic tells: what it rules out and how much it could explain."""

from outrider.acceptance.expectation import k_needed, last_survival, least_k
from outrider.report.acceptance.expected.case import Case
from outrider.report.acceptance.expected.expectation import Cause

_CHECK = "a tree of drafts (EAGLE with top-k above 1) accepts more than a chain of the same depth"


def draft_length(case: Case) -> Cause:
    """M grows with K, and is at most K + 1."""
    here, there = case.segment.figures.k, case.figure.mean.k
    if here is None:
        told = "not told" if there is None else str(there)
        return Cause(
            "K", "not told", f"K: expected {told}, here not told", "tell K: see the server's flags"
        )
    if there is None:
        return _untold(case, here)
    if here == there:
        return Cause("K", "same", f"K: {here} on both sides")
    detail = f"K: expected {there}, here {here}. {_other_k(case, here, there)}"
    check = f"run the same prompts with num_speculative_tokens set to {there}; {_CHECK}"
    return Cause("K", "differs", detail, check)


def _other_k(case: Case, here: int, there: int) -> str:
    value, mean = case.figure.mean.value, case.here
    if case.expected is not case.figure.mean:
        at = case.expected.value
        return f"By its own positions the expected run gives {at:.2f} with drafts cut to {here}"
    if there < here:
        return (
            f"With drafts cut to {there} these steps give {_range(mean.low, mean.high)}"
            f" against {value:g}"
        )
    last, _ = last_survival(case.segment.figures)
    beyond = there - here
    positions = f"the {beyond} positions" if beyond > 1 else "the position"
    given = f"at K = {there} these steps would give {_range(mean.low, mean.high)}"
    added = f"can add from 0 to {beyond} × {last:.3f} tokens"
    text = f"{positions.capitalize()} beyond {here} {added}: {given}"
    gap = value - case.m
    if gap <= 0:
        return text
    if value <= mean.high:
        return f"{text}, so K alone could explain all of the {gap:.2f} tokens"
    text += f", so K alone explains at most {mean.high - case.m:.2f} of the {gap:.2f} tokens"
    return f"{text}, and the rest may be chance" if case.outcome == "cannot be compared" else text


def _untold(case: Case, here: int) -> Cause:
    value = case.figure.mean.value
    if case.figure.mean.low > here + 1:
        return Cause(
            "K",
            "differs",
            f"K: {value:g} cannot be reached at K = {here}, where a step gives at most {here + 1}"
            f" tokens: the expected figure is of K ≥ {least_k(case.figure.mean.low)}",
            f"run the same prompts with the K of the figure, at least {least_k(value)}; {_CHECK}",
        )
    detail = f"K: expected not told, here {here}"
    if case.outcome != "below":
        return Cause("K", "not told", detail, "look the figure's K up and give it as k=")
    needed = k_needed(case.segment.figures, value)
    if needed is None:
        return Cause(
            "K",
            "ruled out",
            f"{detail}; no step accepts all {here} here, so that a larger K would add nothing",
        )
    last, _ = last_survival(case.segment.figures)
    return Cause(
        "K",
        "not told",
        f"{detail}; a further position adds at most {last:.2f} tokens, so only a K of {needed} or"
        " more could explain it all",
        f"look the figure's K up and give it as k=; {_CHECK}",
    )


def _range(low: float, high: float) -> str:
    return f"{low:.2f}" if f"{low:.2f}" == f"{high:.2f}" else f"{low:.2f} to {high:.2f}"
