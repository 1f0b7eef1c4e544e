"""The text says everything that the report does, in any width, and nothing that acts."""

import re
from dataclasses import replace

import pytest
from rich.cells import cell_len
from tests.report.acceptance.samples import (
    HOSTILE_TEXTS,
    ONE_REQUEST,
    SAMPLES,
    hostile,
    known,
    many_segments,
    one_segment,
    split_report,
)
from tests.report.acceptance.shown_text import flat, render

from outrider.acceptance.cadence import CadenceFigures
from outrider.acceptance.estimate import Estimate
from outrider.acceptance.flags import Flag

WIDTHS = (80, 100, 160)
each_sample = pytest.mark.parametrize("name", SAMPLES)


@pytest.mark.parametrize("width", WIDTHS)
@each_sample
def test_no_line_is_wider_than_the_console(name: str, width: int) -> None:
    assert max(map(cell_len, render(SAMPLES[name](), width).splitlines())) <= width


def test_the_verdict_comes_first_and_the_flags_right_after() -> None:
    report = split_report()
    lines = [line for line in render(report, 400).splitlines() if line.strip()]

    assert report.verdict == lines[1].strip()
    assert lines[2] == "Flags"
    titles = [line for line in lines if not line.startswith(" ")]
    assert titles[1:] == [
        *("Flags", "Notes", "Segments", "kind=copy", "kind=chat"),
        *("Keys tried for a split", "Records", "Definitions"),
    ]


def test_flags_have_their_evidence_and_what_to_check() -> None:
    report = one_segment()
    text = flat(render(report))

    for flag in report.segments[0].flags:
        assert f"{flag.code.replace('_', ' ')} {flag.detail} Check: {flag.check}" in text


def test_flags_keep_the_order_of_the_segments_and_tell_one_finding_once() -> None:
    grave, slight = Flag("grave", "evidence", "this"), Flag("slight", "evidence", "that")
    report = many_segments()
    first, second, *rest = report.segments
    segments = (
        replace(first, flags=(slight,)),
        replace(second, flags=(grave, slight)),
        *(replace(each, flags=(slight,)) for each in rest),
    )
    text = render(replace(report, segments=segments))
    flags = text[text.index("Flags") : text.index("Segments")]

    assert flags.index("grave") < flags.index("slight")
    assert flags.count("slight") == flags.count("Check: that") == 1
    assert "and 31 more" in flags


def rows_of(text: str, heading: str, end: str) -> list[list[str]]:
    part = text[text.index(heading) : text.index(end, text.index(heading))]
    lines = [line.strip() for line in part.splitlines() if line.strip()]
    return [re.split(r" {2,}", line) for line in lines]


def test_each_column_of_the_overview_has_its_figure() -> None:
    rows = rows_of(render(split_report()), "  segment ", "\nkind=copy")

    assert [row for row in rows[2:] if row != ["undivided"]] == [
        *(
            [name, *cells.split("  ")]
            for name, cells in {
                "kind=copy": "18  336  3.90 (3.78–4.03)  4.20  74.0  15.2  61.6  48.5  342  4",
                "kind=chat": "18  120  1.55 (1.37–1.75)  1.49  14.6  65.0  2.5  8.2  387  1",
                "all": "36  456  3.28 (3.07–3.51)  2.85  58.8  28.3  46.1  21.1  729  –",
            }.items()
        ),
    ]


def test_each_figure_of_a_segment_says_what_it_is_of() -> None:
    rows = rows_of(render(one_segment()), "  M  ", "  [a]")

    assert rows == [
        ["M", "1.23", "tokens per step: 43 steps, 10 accepted"],
        ["M by request", "1.23", "each counts once: 1 request"],
        ["A/D %", "7.8", "10 accepted of 129 drafted"],
        ["H_0/S %", "90.7", "39 of 43 steps"],
        ["H_K/S %", "7.0", "3 of 43 steps"],
        ["coverage %", "– [a]", "share of decode steps with a draft"],
        ["wasted", "119", "of 129 drafted tokens"],
    ]


def test_the_cadence_of_streams_is_among_the_figures_where_it_is_known() -> None:
    report = one_segment()
    [segment] = report.segments
    cadence = CadenceFigures(
        gaps=120,
        answers=4,
        mean_gap_ms=known(20.0),
        gap_cv=Estimate(0.866, None, ONE_REQUEST),
        longest_gap_ms=50.0,
    )
    figures = replace(segment.figures, tokens_per_chunk=1.25, cadence=cadence)
    rows = rows_of(
        render(replace(report, segments=(replace(segment, figures=figures),))), "  M  ", "  [a]"
    )

    assert rows[-4:] == [
        ["per chunk", "1.25", "tokens per event of a stream"],
        ["mean gap ms", "20.0", "between events within an answer: 120 gaps"],
        ["gap CV", "0.87", "within an answer, each counts once: 4 answers"],
        ["longest gap ms", "50.0", "within an answer, 2.5 times the mean"],
    ]


def test_the_best_k_is_marked_and_a_shorter_k_an_estimate() -> None:
    copy, chat = (
        render(replace(split_report(), segments=(each,), whole=()))
        for each in split_report().segments
    )

    assert re.findall(r"^  (\d).*← best", copy, re.MULTILINE) == ["4"]
    assert re.findall(r"^  (\d).*← best", chat, re.MULTILINE) == ["1"]
    assert re.findall(r"^  (\d).*≈", chat, re.MULTILINE) == ["1", "2", "3"]
    assert "Best: K = 4 in at least 95 % of resamples." in copy
    assert "Best: K = 1; from 1 to 4 in 95 % of resamples." in chat


def test_the_records_as_a_whole_only_raise_what_their_parts_do_not() -> None:
    report = split_report()
    both, mixture = Flag("low_coverage", "of all", "x"), Flag("all_or_nothing", "two kinds", "y")
    [whole] = report.whole
    text = render(replace(report, whole=(replace(whole, flags=(mixture, both)),)))

    assert "all: two kinds" in text
    assert "of all" not in text
    assert text.index("all or nothing") < text.index("low coverage")


def test_segments_named_alike_by_the_whole_have_their_row_once() -> None:
    report = split_report()
    [whole] = report.whole
    rows = re.compile(r"^  all +36 +456 ", re.MULTILINE)

    assert len(rows.findall(render(report))) == 1
    assert len(rows.findall(render(replace(report, whole=(), pooled=whole)))) == 1
    assert not rows.findall(render(replace(report, whole=(), pooled=None)))


def test_what_the_split_leaves_whole_has_no_second_row() -> None:
    report = split_report()
    copy, _ = report.segments
    text = render(replace(report, whole=(*report.whole, replace(copy, name="the same"))))

    assert "undivided" in text
    assert "the same" not in text


def test_why_the_worth_of_k_is_unknown_is_told_once_or_of_the_segments_it_is_so_of() -> None:
    report = split_report()
    copy, chat = report.segments
    without = tuple(
        replace(each, draft_length=None, draft_length_reason="no cost") for each in (copy, chat)
    )

    assert "Not known" not in render(report)
    assert render(replace(report, segments=without)).count("Not known: no cost.") == 1
    text = render(replace(report, segments=(copy, without[1])))
    assert "- Not known of kind=chat: no cost." in text
    assert text.count("← best") == 1


def test_only_the_largest_of_many_segments_are_shown_in_detail() -> None:
    report = many_segments()
    text = render(report)
    largest = {each.name for each in sorted(report.segments, key=lambda s: -s.figures.steps)[:3]}

    assert {line for line in text.splitlines() if line.startswith("tag=")} == largest
    assert all(f"  {each.name} " in text for each in report.segments)
    assert "Details follow of the 3 segments with the most steps, of 40" in flat(text)
    assert len(text.splitlines()) < 200


def test_what_is_unknown_is_a_dash_with_its_reason_and_never_0() -> None:
    report = SAMPLES["estimated"]()
    text = render(report)

    for line, mark in (("H_0/S", "– [a]"), ("H_K/S", "– [a]"), ("coverage", "– [b]")):
        [row] = re.findall(rf"^  {line} %.*$", text, re.MULTILINE)
        assert mark in row
    assert "[a] llama.cpp tells no histogram" in text
    assert "[b] the records do not tell their decode steps" in text
    assert "Not known: K is unknown and no histogram was recorded." in text


def test_zero_is_shown_as_0() -> None:
    assert re.search(r"^  2 +0 +0\.0 *$", render(one_segment()), re.MULTILINE)


def test_what_was_not_counted_is_marked() -> None:
    report = SAMPLES["estimated"]()
    text = render(report)

    assert "≈1.48" in text
    assert "≈135 steps" in text
    assert "≈ estimated from other numbers, not counted" in text
    [segment] = report.segments
    nominal = replace(
        segment, figures=replace(segment.figures, steps_estimated=False, drafted_nominal=True)
    )
    text = render(replace(report, segments=(nominal,)))
    assert "65 accepted of ≈347 drafted" in text
    assert "≈18.7" in text
    assert "≈ nominal: K for every step, not counted" in text
    assert "≈135" not in text


def test_without_draft_lengths_survival_is_labelled_naive() -> None:
    report = one_segment()
    [segment] = report.segments
    tail = replace(segment, figures=replace(segment.figures, survival_estimator="tail"))
    text = render(replace(report, segments=(tail,)))

    assert "Draft lengths are unknown" in text
    assert "naive" in text[text.index("Draft positions") :].splitlines()[1]


def test_requests_that_no_source_tells_are_unknown() -> None:
    report = split_report()
    segments = tuple(
        replace(each, figures=replace(each.figures, requests=None)) for each in report.segments
    )
    text = render(replace(report, segments=segments))

    assert "[a] the source does not tell how many answers it covers" in text
    assert "each counts once: 18 records, requests unknown" in text


def test_bad_records_are_listed_with_their_place_and_counted() -> None:
    report = SAMPLES["withheld"]()
    text = render(report)

    for entry in report.records.bad:
        place = entry.source if entry.line is None else f"{entry.source}:{entry.line}"
        assert re.search(rf"^  {re.escape(place)} +{re.escape(entry.reason)}", text, re.MULTILINE)
    assert "and 37 more bad records" in text
    assert "88 read: 31 used, 0 without metrics, 57 bad (64.8 %)." in text


def test_why_there_is_no_pooled_figure_is_told() -> None:
    report = SAMPLES["mixed_k"]()

    assert f"No pooled figure: {report.pooled_refused}." in flat(render(report))


def test_reconciliation_shows_both_sides_the_gap_and_the_causes() -> None:
    report = split_report()
    text = flat(render(report))

    assert "completion tokens = accepted + steps 1,680 1,311 +369 no" in text
    for identity in report.segments[0].reconciliation[:2]:
        assert identity.detail in text
        assert all(cause in text for cause in identity.causes)


def test_only_what_is_used_is_defined() -> None:
    text = render(SAMPLES["estimated"]())
    defined = text[text.index("Definitions") :]

    assert "  M by request  " in defined
    assert "conditional" not in defined


@each_sample
def test_there_is_colour_on_a_terminal_alone(name: str) -> None:
    report = SAMPLES[name]()

    assert "\x1b" not in render(report)
    coloured = render(report, terminal=True)
    assert "\x1b[" in coloured
    assert re.sub(r"\x1b\[[\d;]*m", "", coloured) == render(report)


@pytest.mark.parametrize("text", HOSTILE_TEXTS, ids=range(len(HOSTILE_TEXTS)))
def test_hostile_text_is_shown_as_it_is_and_does_nothing(text: str) -> None:
    shown = render(hostile(text), 80)

    assert all(line == "" or line.isprintable() for line in shown.split("\n"))
    assert max(map(cell_len, shown.split("\n"))) <= 80
    shown.encode()
    bare = "".join(render(hostile(text), 1000).split())
    escaped = "".join(
        each if each.isprintable() else each.encode("unicode_escape").decode() for each in text
    )
    assert bare.count("".join(escaped[:150].split())) >= 15


def test_a_report_of_nothing_says_so() -> None:
    report = one_segment()
    nothing = replace(
        report, segments=(), pooled=None, verdict="Nothing to report.", pooled_refused="no records"
    )

    text = render(nothing)

    assert "Nothing to report." in text
    assert "What K is worth" not in text
