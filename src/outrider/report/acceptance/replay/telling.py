"""A replay's findings in sentences and rows, for every form of the report."""

from outrider.report.acceptance.figure_cells import percent
from outrider.report.acceptance.replay.findings import ReplayFindings, SegmentChoice, SettingAtK
from outrider.report.cells import MISSING, counted, interval_text

TITLE = "Settings side by side"
BY_SEGMENT = "By segment"


def verdict_of(findings: ReplayFindings) -> str:
    """Say which setting is best, by how much, and whether that pays."""
    choice = findings.choice
    best = choice.best
    named = f"{best.setting} at K = {best.k}"
    tokens = interval_text(best.tokens_per_step, 2)
    facts = (
        f"{tokens} tokens per decode step over {counted(best.answers, 'answer')}, where"
        f" {percent(best.coverage.value)} % of the steps had a draft"
    )
    if choice.pays is False and best.speed_up is None:
        return (
            "Nothing is gained, so leave speculation off: no drafted token of the best,"
            f" {named}, was accepted; {facts}."
        )
    if choice.pays is None or best.speed_up is None:
        return (
            f"Most is gained with {named}: {facts}. Whether that pays depends on what a step costs:"
            " give --step-cost."
        )
    gain = interval_text(best.speed_up, 2)
    if choice.pays:
        return f"Best is {named}: predicted {gain} times the speed without speculation; {facts}."
    return (
        f"None pays at this step cost, so leave speculation off: the best, {named}, is predicted at"
        f" {gain} times the speed without; {facts}."
    )


def setting_headings(findings: ReplayFindings) -> tuple[str, ...]:
    """Return the headings of the table of settings."""
    return (
        *("setting", "best\nK", "tokens per\ndecode step", "M", "A/D\n%", "cover-\nage %"),
        *_speed_headings(findings),
    )


def setting_row(findings: ReplayFindings, each: SettingAtK) -> tuple[str, ...]:
    """Return one setting's cells under those headings."""
    return (
        each.setting,
        str(each.k),
        interval_text(each.tokens_per_step, 2),
        _mean(each),
        percent(each.draft_acceptance_rate.value),
        percent(each.coverage.value),
        *_speeds(findings, each),
    )


def segment_headings(findings: ReplayFindings) -> tuple[str, ...]:
    """Return the headings of the table of segments."""
    weighed = findings.relative is not None
    return (
        *("segment", "best setting", "K", "answers", "tokens per\ndecode step", "cover-\nage %"),
        *_speed_headings(findings),
        *(("pays",) if weighed else ()),
    )


def segment_row(findings: ReplayFindings, choice: SegmentChoice) -> tuple[str, ...]:
    """Return one segment's cells under those headings."""
    best = choice.best
    weighed = findings.relative is not None
    pays = {True: "yes", False: "no", None: MISSING}[choice.pays]
    return (
        choice.segment,
        best.setting,
        str(best.k),
        f"{best.answers:,}",
        interval_text(best.tokens_per_step, 2),
        percent(best.coverage.value),
        *_speeds(findings, best),
        *((pays,) if weighed else ()),
    )


def deployment_of(findings: ReplayFindings) -> str:
    """Return the line that says which flags the choice needs, "" where it does not pay."""
    best, flags = findings.choice.best, findings.choice.flags
    return "" if flags is None else f"To serve {best.setting} at K = {best.k}: {flags}"


def _mean(each: SettingAtK) -> str:
    mean = each.mean_acceptance_length.value
    return MISSING if mean is None else f"{mean:.2f}"


def _speed_headings(findings: ReplayFindings) -> tuple[str, ...]:
    if findings.relative is None:
        return ()
    return ("speed-up",) if findings.relative else ("predicted\ntokens/s", "speed-up")


def _speeds(findings: ReplayFindings, each: SettingAtK) -> tuple[str, ...]:
    if findings.relative is None:
        return ()
    gain = MISSING if each.speed_up is None else interval_text(each.speed_up, 2)
    if findings.relative:
        return (gain,)
    return (MISSING if each.speed is None else interval_text(each.speed, 1), gain)
