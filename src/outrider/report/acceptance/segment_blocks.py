"""One segment in full."""

from collections.abc import Iterator, Sequence

from outrider.acceptance.draft_length import DraftLengthChoice
from outrider.acceptance.reconciliation import Identity
from outrider.report.acceptance.blocks import Block, Heading, Item, Items, Paragraph, Table, columns
from outrider.report.acceptance.document import SegmentReport
from outrider.report.acceptance.draft_length_table import draft_length_table
from outrider.report.acceptance.figures_table import figures_table
from outrider.report.acceptance.shape_tables import band_table, histogram_table, position_table
from outrider.report.cells import MISSING, number


def segment_blocks(segment: SegmentReport, step_cost: str | None) -> Iterator[Block]:
    """Yield the blocks of one segment; `step_cost` describes the cost that K was weighed by."""
    figures = segment.figures
    yield Heading(segment.name, 2)
    if untold := _untold(segment):
        yield Paragraph(untold, "aside")
    yield figures_table(segment)
    for title, table in (
        ("Accepted tokens per step", histogram_table(figures)),
        ("Draft positions", position_table(figures)),
        ("Along the answer", band_table(figures)),
    ):
        if table is not None:
            yield Heading(title, 3)
            yield table
    yield from worth_blocks(segment, step_cost)
    if segment.reconciliation:
        yield Heading("Reconciliation", 3)
        yield from _reconciliation(segment.reconciliation)


def _untold(segment: SegmentReport) -> str:
    """Return the values that the segment's name does not tell already."""
    told = (
        f"{'K =' if key == 'k' else key.replace('_', ' ')} {'unknown' if value is None else value}"
        for key, value in segment.values.items()
    )
    return ", ".join(each for each in told if each not in segment.name.split(", "))


def worth_blocks(
    segment: SegmentReport, step_cost: str | None, title: str = "What K is worth"
) -> Iterator[Block]:
    """Yield what every K is worth in a segment, nothing where it cannot be said."""
    table = draft_length_table(segment)
    choice = segment.draft_length
    if table is None or choice is None:
        return
    yield Heading(title, 3)
    yield Paragraph(_best(choice))
    yield table
    if step_cost is not None:
        yield Paragraph(f"Step cost: {step_cost}", "aside")
    if choice.notes:
        yield Items(tuple(Item("", (note,)) for note in choice.notes), "aside")


def worth_unknown(segments: Sequence[SegmentReport]) -> Paragraph | Items | None:
    """Return why it is not known what K is worth, told once where it is so of all segments."""
    unknown = [each for each in segments if each.draft_length is None and each.draft_length_reason]
    reasons = {each.draft_length_reason for each in unknown}
    if len(unknown) == len(segments) and len(reasons) == 1:
        return Paragraph(f"Not known: {reasons.pop()}.")
    if not unknown:
        return None
    return Items(
        tuple(
            Item("", (f"Not known of {each.name}: {each.draft_length_reason}.",))
            for each in unknown
        )
    )


def _best(choice: DraftLengthChoice) -> str:
    best = f"Best: K = {choice.best_k}{' (off)' if choice.best_k == 0 else ''}"
    low, high = choice.best_k_low, choice.best_k_high
    if low is None or high is None:
        return f"{best}, without an interval."
    return (
        f"{best}; from {low} to {high} in 95 % of resamples."
        if low < high
        else f"{best} in at least 95 % of resamples."
    )


def _reconciliation(identities: tuple[Identity, ...]) -> Iterator[Block]:
    rows = tuple(
        (
            identity.name,
            _side(identity.left),
            _side(identity.right),
            MISSING if identity.gap is None else f"{identity.gap:+,.0f}" if identity.gap else "0",
            {True: "yes", False: "no", None: "unknown"}[identity.holds],
        )
        for identity in identities
    )
    yield Table(columns("identity", "left", "right", "gap", "holds"), (("", rows),))
    told = [identity for identity in identities if not identity.holds]
    if told:
        yield Items(tuple(Item(identity.name, tuple(_explained(identity))) for identity in told))


def _side(value: float | None) -> str:
    return number(value, 0 if value is None or value == int(value) else 2)


def _explained(identity: Identity) -> Iterator[str]:
    yield identity.detail
    if identity.causes:
        yield "Known causes: " + "; ".join(identity.causes)
