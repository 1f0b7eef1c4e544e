"""Causes in what was asked: the dataset, sampling, length and language."""

from outrider.acceptance.expectation import best_of, mean_at
from outrider.report.acceptance.document import SegmentReport
from outrider.report.acceptance.expected.case import Case, hold, values_of, worst
from outrider.report.acceptance.expected.conditions import bare
from outrider.report.acceptance.expected.expectation import Cause
from outrider.report.acceptance.short_names import shared_parts


def dataset(case: Case) -> Cause:
    """Acceptance depends on the kind of prompt more than on most settings."""
    status, detail = hold(case, "dataset")
    if parts := _parts(case):
        detail = f"{detail}. {parts}"
    if status == "same":
        return Cause("dataset", status, detail)
    named = (
        "--dataset-name hf --dataset-path philschmid/mt-bench"
        if bare(case.figure.conditions.get("dataset", ("",))[0]) == "mtbench"
        else "--dataset-name custom --dataset-path THEIR_PROMPTS.jsonl"
    )
    check = (
        "send the prompts that the figure is of and report on those:"
        f" vllm bench serve {named} --save-result, then outrider report RESULT.json"
    )
    return Cause("dataset", status, detail, check)


def sampling(case: Case) -> Cause:
    """A higher temperature makes the target's choice harder to foresee."""
    found = [hold(case, "temperature")]
    greedy = found[0][0] == "same" and values_of(case.segment, "temperature") == ("0",)
    if not greedy:
        # At temperature 0 there is nothing for top_p to cut.
        found.append(hold(case, "top_p"))
    status, detail = worst(found)
    told = case.figure.conditions.get("temperature", ("0",))[0]
    check = (
        f"repeat some prompts at temperature {told}, or split by it:"
        " outrider report SOURCE --by temperature"
    )
    return Cause("sampling", status, detail, None if status == "same" else check)


def length_and_language(case: Case) -> Cause:
    """Drafters fail beyond the length and outside the language that they were trained on."""
    status, detail = worst([hold(case, "prompt_length"), hold(case, "language")])
    if stretch := _best_stretch(case):
        detail += f". {stretch}"
    check = (
        "outrider report SOURCE --by prompt_length, and a tag for the language beside each answer;"
        " compare with the length that the drafter was trained at (its config.json)"
    )
    return Cause("length and language", status, detail, None if status == "same" else check)


def _parts(case: Case) -> str:
    """Say whether any part of the records meets the expectation, nothing where there is one."""
    known = [each for each in case.parts if each.figures.mean_acceptance_length.value is not None]
    if len(known) < 2:  # noqa: PLR2004
        return ""
    return _of_best(case, known)


def _of_best(case: Case, parts: list[SegmentReport]) -> str:
    found = [(each, at) for each in parts if (at := mean_at(each.figures, case.expected.k))]
    best, at = max(found, key=lambda pair: pair[1].high)
    shared = shared_parts(each.name for each in parts)
    name = ", ".join(part for part in best.name.split(", ") if part not in shared) or best.name
    where = "" if at.k == best.figures.k else f" at K = {at.k}"
    if at.low >= case.expected.low:
        return f"The part {name} alone meets it with M = {at.low:.2f}{where}"
    if at.most >= case.expected.low:
        return f"The part {name} alone may meet it, with M up to {at.most:.2f}{where}"
    most = f"M = {at.high:.2f}" if at.low == at.high else f"M of at most {at.high:.2f}"
    return f"No part that was found meets it; the best is {name} with {most}{where}"


def _best_stretch(case: Case) -> str:
    """Say whether acceptance along the answer reaches the expectation, where K is the same."""
    bands = [band.mean_acceptance_length for band in case.segment.figures.bands]
    best = best_of(bands)
    if case.here.k != case.segment.figures.k or best is None or len(bands) < 2:  # noqa: PLR2004
        return ""
    reaches = "reaches" if (best.value or 0) >= case.expected.low else "does not reach"
    return (
        f"Along the answer the best stretch has M = {best.value:.2f}, which {reaches}"
        f" {case.expected.value:.4g}"
    )
