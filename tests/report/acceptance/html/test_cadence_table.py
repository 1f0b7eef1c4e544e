from dataclasses import replace

from tests.report.acceptance.samples import ONE_REQUEST, known, one_segment

from outrider.acceptance.cadence import NO_GAPS, CadenceFigures
from outrider.acceptance.estimate import Estimate
from outrider.report.acceptance.definitions import DEFINITIONS
from outrider.report.acceptance.document import SegmentReport
from outrider.report.acceptance.html.tables import cadence_table

CADENCE = CadenceFigures(
    gaps=1200,
    answers=4,
    mean_gap_ms=known(20.0),
    gap_cv=Estimate(0.866, None, ONE_REQUEST),
    longest_gap_ms=50.0,
)


def segment(cadence: CadenceFigures | None, tokens_per_chunk: float | None) -> SegmentReport:
    [made] = one_segment().segments
    figures = replace(made.figures, cadence=cadence, tokens_per_chunk=tokens_per_chunk)
    return replace(made, figures=figures)


def test_a_segment_with_streams_has_its_cadence_in_a_row() -> None:
    table = cadence_table([segment(CADENCE, 1.25)])
    assert table is not None
    [row] = table.rows
    assert [cell.text for cell in row.cells] == ["1.25", "1,200", "20.0", "0.87", "50.0"]


def test_what_one_segment_does_not_tell_is_missing_with_its_reason() -> None:
    table = cadence_table([segment(CADENCE, 1.25), segment(None, 4.5), segment(None, None)])
    assert table is not None
    _, chunks_alone = table.rows
    assert [cell.text for cell in chunks_alone.cells] == ["4.50", "–", "–", "–", "–"]
    assert NO_GAPS in table.notes


def test_without_streams_there_is_no_table() -> None:
    assert cadence_table([segment(None, None)]) is None


def test_every_figure_has_its_definition() -> None:
    table = cadence_table([segment(CADENCE, None)])
    assert table is not None
    symbols = {entry.symbol for entry in DEFINITIONS}
    assert {column.defined for column in table.columns} <= symbols
