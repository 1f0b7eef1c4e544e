"""Causes in what the server was started with: template, quantisation, engine, checkpoints."""

from outrider.acceptance.flags import BROKEN_DRAFTER_CHECK
from outrider.report.acceptance.expected.case import Case, hold, values_of, worst
from outrider.report.acceptance.expected.expectation import Cause


def template(case: Case) -> Cause:
    """A drafter is trained on one template: another, or none, reads as foreign text."""
    status, detail = worst([hold(case, "template")])
    check = (
        "send messages to /v1/chat/completions, not bare text to /v1/completions, with thinking on"
        " or off as the drafter was trained; print what the target gets with"
        " tokenizer.apply_chat_template(messages, tokenize=False, add_generation_prompt=True)"
    )
    return Cause("chat template", status, detail, None if status == "same" else check)


def quantisation(case: Case) -> Cause:
    """A quantised target chooses other tokens than the one that the drafter learnt from."""
    status, detail = worst([hold(case, "quantisation"), hold(case, "draft_quantisation")])
    check = (
        "serve target and drafter in the precision that the figure is of, e.g. --dtype bfloat16 and"
        " no quantised checkpoint, on 20 prompts; the server's start-up log names both"
        " (grep -i quant server.log)"
    )
    return Cause("quantisation", status, detail, None if status == "same" else check)


def engine(case: Case) -> Cause:
    """The same drafter on another engine, or another version of it."""
    status, detail = worst([hold(case, "engine"), hold(case, "engine_version")])
    there = case.figure.conditions.get("engine", ("the other engine",))[0]
    if status == "differs" and case.figure.stored:
        check = (
            "make sure that both reports are of the same prompts and sampling, then compare what"
            " the engines say at start-up of drafter, K and attention backend, and try another"
            " version of each"
        )
        return Cause("engine", status, detail, check)
    check = (
        f"run the same prompts on {there} and hold this against it: outrider report THEIRS --format"
        " json --output theirs.json, then outrider report SOURCE --expect theirs.json"
    )
    return Cause("engine", status, detail, None if status == "same" else check)


def checkpoints(case: Case) -> Cause:
    """A drafter fits one target, and both come in revisions."""
    names = ("model", "drafter", "method", "revision", "draft_revision")
    status, detail = worst([hold(case, name) for name in names])
    if status == "same":
        return Cause("target and drafter", status, detail)
    if case.segment.figures.steps and any(f.code == "broken_drafter" for f in case.segment.flags):
        return Cause("target and drafter", status, detail, BROKEN_DRAFTER_CHECK)
    model = (values_of(case.segment, "model") or ("TARGET",))[0]
    check = (
        f"compare the target that the drafter's card names with {model}, to the letter (base or"
        " instruct, date, fine-tune), and pin both with --revision; a drafter trained for another"
        " target still loads and drafts worse"
    )
    return Cause("target and drafter", status, detail, check)
