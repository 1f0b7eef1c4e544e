import re
from base64 import b64encode
from collections import Counter
from dataclasses import replace
from hashlib import sha256
from itertools import pairwise
from pathlib import Path

import pytest
from tests.report.acceptance.html.page_tree import (
    charts,
    columns,
    executable,
    rows,
    section,
    tree,
    written,
)
from tests.report.acceptance.samples import (
    HOSTILE_TEXTS,
    SAMPLES,
    estimated,
    hostile,
    many_segments,
    mixed_k,
    one_segment,
    split_report,
)

from outrider.acceptance.flags import Flag
from outrider.report.acceptance.definitions import DEFINITIONS
from outrider.report.acceptance.html import page as html

STYLE = Path(html.__file__).with_name("page.css").read_text(encoding="utf-8")


@pytest.mark.parametrize("name", SAMPLES)
def test_every_report_is_well_formed_and_all_that_refers_has_its_target(name: str) -> None:
    page = tree(SAMPLES[name]())
    ids = Counter(each.attributes["id"] for each in page.all() if "id" in each.attributes)
    assert max(ids.values()) == 1
    for element in page.all():
        for attribute in ("data-tip", "aria-describedby", "aria-labelledby"):
            if attribute in element.attributes:
                assert element.attributes[attribute] in ids
        if "href" in element.attributes:
            assert element.attributes["href"].removeprefix("#") in ids


@pytest.mark.parametrize("name", SAMPLES)
def test_every_report_can_be_walked_by_headings_landmarks_and_table_heads(name: str) -> None:
    page = tree(SAMPLES[name]())
    levels = [int(each.tag[1]) for each in page.all() if re.fullmatch("h[1-6]", each.tag)]
    assert levels[0] == 1
    assert levels.count(1) == 1
    assert all(after <= before + 1 for before, after in pairwise(levels))
    for tag in ("header", "nav", "main", "footer"):
        assert len(list(page.one("body").all(tag))) == 1
    for head in page.all("th"):
        assert head.attributes.get("scope") in {"col", "row"}
    for plot in page.all("div", role="img"):
        assert len(plot.attributes["aria-label"]) > 20
    for scrolling in page.all("div", **{"class": "scroll"}):
        assert scrolling.attributes["tabindex"] == "0"


def test_no_file_but_the_page_itself_is_ever_asked_for() -> None:
    page = tree(split_report())
    for element in page.all():
        assert not {"src", "srcset", "action", "data", "poster"} & set(element.attributes)
        assert element.tag not in {"link", "img", "iframe", "object", "base", "form"}
        assert element.attributes.get("href", "#").startswith("#")
    assert "url(" not in STYLE
    assert "@import" not in STYLE


@pytest.mark.parametrize("name", SAMPLES)
def test_only_the_scripts_of_the_page_itself_may_run(name: str) -> None:
    page = tree(SAMPLES[name]())
    policy = page.one("meta", **{"http-equiv": "Content-Security-Policy"}).attributes["content"]
    rules = dict(rule.strip().split(" ", 1) for rule in policy.split(";"))
    assert rules["default-src"] == "'none'"
    hashes = {b64encode(sha256(each.encode()).digest()).decode() for each in executable(page)}
    assert rules["script-src"].split() == [
        f"'sha256-{b64encode(sha256(each.encode()).digest()).decode()}'"
        for each in executable(page)
    ]
    assert hashes
    assert all("type" in each.attributes for each in page.all("script"))


def test_the_charts_library_is_only_there_where_something_is_drawn() -> None:
    assert [len(each) > 500_000 for each in executable(tree(one_segment()))] == [True, False]
    assert [len(each) > 500_000 for each in executable(tree(estimated()))] == [False]


def test_the_table_of_segments_has_every_figure_with_its_interval() -> None:
    page = tree(replace(split_report(), definitions=DEFINITIONS))
    table = next(section(page, "segments").all("table"))
    named = dict(zip(columns(table)[1:], rows(table)["kind=chat"], strict=True))
    assert named == {
        "K": "4",
        "Mean acceptance length M": "1.55 1.37–1.75",
        "M by request": "1.49 1.31–1.69",
        "Acceptance rate A/D, %": "14.6 8.6–21.2",
        "Accepted nothing H 0 /S, %": "65.0 59.0–71.6",
        "Accepted all K H K /S, %": "2.5 0.0–9.1",
        "Coverage %": "8.2 2.2–14.8",
        "Requests": "18",
        "Steps S": "120",
        "Drafted D": "453",
        "Accepted A": "66",
        "Wasted D − A": "387",
    }


def test_the_table_of_positions_has_histogram_survival_and_the_naive_ratio() -> None:
    page = tree(one_segment())
    (table,) = section(page, "positions").all("table")
    assert table.one("caption").words == "Positions of all: the data speak up to position 3"
    assert [row[:2] for row in rows(table).values()] == [
        ["39", "90.7"],
        ["1", "2.3"],
        ["0", "0.0"],
        ["3", "7.0"],
    ]
    assert [cell.split()[0] for cell in rows(table)["2"][2:]] == [
        "7.0",
        "7.0",
        "75.0",
        "4",
        "+0.07",
    ]


def test_a_survival_that_is_only_a_tail_ratio_is_named_so_and_says_why() -> None:
    report = one_segment()
    (only,) = report.segments
    made = replace(
        only.figures, survival_estimator="tail", survival_reason="draft lengths are unknown"
    )
    page = tree(replace(report, segments=(replace(only, figures=made),)))
    words = section(page, "positions").words
    assert "Survival, tail ratio" in words
    assert "No product limit: draft lengths are unknown." in words
    assert "Dashed: naive tail ratio." in words
    assert "Survival, product limit" not in words
    assert "Solid" not in words


@pytest.mark.parametrize(("figure", "cell"), [(None, "–"), (0, "0")], ids=["unknown", "zero"])
def test_what_is_unknown_has_a_dash_and_a_reason_where_zero_is_a_number(
    figure: int | None, cell: str
) -> None:
    report = one_segment()
    (only,) = report.segments
    made = replace(only.figures, requests=figure)
    page = tree(replace(report, segments=(replace(only, figures=made),)))
    table = next(section(page, "segments").all("table"))
    found = dict(zip(columns(table)[1:], rows(table)["all"], strict=True))["Requests"]
    assert found.startswith(cell)
    reason = "does not tell how many requests"
    assert (reason in section(page, "segments").words) == (figure is None)


def test_a_missing_number_leads_to_its_reason() -> None:
    page = tree(estimated())
    links = section(page, "segments").all("a", **{"class": "why"})
    reasons = {link.words: page.one(id=link.attributes["href"][1:]).words for link in links}
    assert "llama.cpp tells no histogram" in reasons.values()
    assert "the records do not tell their decode steps" in reasons.values()


def test_what_was_estimated_or_is_nominal_says_so_beside_the_number() -> None:
    report = estimated()
    (only,) = report.segments
    nominal = replace(only, figures=replace(only.figures, drafted_nominal=True))
    table = next(section(tree(replace(report, segments=(nominal,))), "segments").all("table"))
    named = dict(zip(columns(table)[1:], rows(table)["all"], strict=True))
    assert named["Steps S"] == "135 estimated"
    assert named["Drafted D"] == "347 nominal"
    assert named["Accepted A"] == "65"
    assert "estimated" in named["Mean acceptance length M"]


def test_every_number_of_a_table_has_a_definition() -> None:
    page = tree(replace(split_report(), definitions=DEFINITIONS))
    plain = {"Segment", "Key", "Values", "Explained % of the variation of M", "p F test"}
    for table in page.all("table"):
        for head in table.one("thead").all("th"):
            links = list(head.all("a", **{"class": "term"}))
            assert bool(links) != (head.words in plain), head.words
    terms = {each.attributes["data-tip"] for each in page.all("a", **{"class": "term"})}
    assert len(terms) > 15
    assert {each.attributes["id"] for each in section(page, "definitions").all("div")} >= terms


def test_a_report_without_definitions_still_shows_its_numbers() -> None:
    page = tree(replace(split_report(), definitions=()))
    assert not list(page.all("a", **{"class": "term"}))
    assert "3.90" in section(page, "segments").words


def test_flags_come_once_with_all_their_segments_and_the_gravest_first() -> None:
    report = split_report()
    low = Flag("low_coverage", "half", "look it up")
    broken = Flag("broken_drafter", "1 of 633 accepted", "the drafter's weights")
    copy, chat = report.segments
    flagged = replace(copy, flags=(low, broken))
    flags = section(tree(replace(report, segments=(flagged, chat))), "flags")
    found = [each.one("h3").words for each in flags.all("article")]
    assert found == ["Problem Broken drafter", "Check Low coverage", "Check Wasted beyond"]
    coverage = list(flags.all("article"))[1].words
    assert "kind=copy: Half." in coverage
    assert "kind=chat: 8.2 %" in coverage


def test_the_whole_adds_the_flags_that_its_parts_lack() -> None:
    report = split_report()
    (whole,) = report.whole
    flags = (Flag("low_coverage", "again", "-"), Flag("counters_reset", "at 12:00", "restarts"))
    page = tree(replace(report, whole=(replace(whole, flags=flags),)))
    words = section(page, "flags").words
    assert "Counters reset" in words
    assert "Again" not in words


def test_an_identity_that_fails_shows_its_gap_and_the_causes() -> None:
    words = section(tree(split_report()), "reconciliation").words
    assert "completion tokens = accepted + steps gap +1,713" in words
    assert "3,210 against 1,497" in words
    assert "gap −54" in words
    assert "the first token of each answer comes from its prefill" in words
    assert words.index("gap +1,713") < words.index("holds")


def test_an_identity_that_cannot_be_checked_neither_holds_nor_fails() -> None:
    words = section(tree(one_segment()), "reconciliation").words
    assert "completion tokens = accepted + steps cannot be checked" in words
    assert "unknown against 53" in words


def test_what_was_expected_has_every_segment_and_the_causes_of_the_undivided() -> None:
    found = section(tree(SAMPLES["below_its_card"]()), "expected")
    outcomes = {name: cells[0] for name, cells in rows(found.one("table")).items()}
    assert outcomes == {"all": "below", "kind=chat": "below", "kind=copy": "cannot be compared"}
    statuses = [each.text for each in found.all("span") if "severity" in each.attributes["class"]]
    assert statuses.count("differs") == 2
    assert len(statuses) == 9
    assert not list(tree(split_report()).all("section", id="expected"))


def test_the_records_are_accounted_for() -> None:
    words = section(tree(split_report()), "records").words
    assert "Read 45 Used 36 Without metrics 7 Bad, skipped 2" in words
    assert "4 × the field is null: n > 1 answers were asked for" in words
    assert "logs/answers-2.jsonl , line 204 histogram sums to 43" in words


def test_a_withheld_verdict_is_headed_so() -> None:
    page = tree(SAMPLES["withheld"]())
    assert page.one(id="h-verdict").words == "Verdict withheld"
    assert "The first 20 of 57" in section(page, "records").words


def test_a_refused_pool_says_why() -> None:
    words = section(tree(mixed_k()), "segments").words
    assert "No pooled figure: Histograms of K = 1 and K = 8 are never added" in words


def test_of_many_segments_the_largest_are_drawn_and_all_are_in_the_tables() -> None:
    page = tree(many_segments())
    positions = section(page, "positions")
    assert "6 segments with the most steps of 40" in positions.words
    assert len(list(positions.all("table"))) == 40
    assert len(rows(next(section(page, "segments").all("table")))) == 40
    assert len(list(positions.one("div", **{"class": "charts small"}).all("figure"))) == 6
    assert sum("open" in each.attributes for each in positions.all("details")) == 3


def test_nothing_usable_is_said_without_empty_tables() -> None:
    nothing = replace(
        split_report(), segments=(), whole=(), pooled=None, pooled_refused="nothing could be read"
    )
    page = tree(nothing)
    assert "Nothing that was read says anything of speculation" in section(page, "segments").words
    assert charts(page) == []


@pytest.mark.parametrize("text", HOSTILE_TEXTS)
def test_words_from_outside_are_shown_and_never_act(text: str) -> None:
    page = tree(hostile(text))
    harmless = tree(hostile("harmless"))
    assert [each.tag for each in page.all()] == [each.tag for each in harmless.all()]
    assert executable(page) == executable(harmless)
    attributes = {name for each in page.all() for name in each.attributes}
    assert not {name for name in attributes if name.startswith("on")}
    shown = page.one("p", **{"class": "verdict"}).text
    assert shown.isprintable()
    written(hostile(text)).encode("utf-8")


@pytest.mark.parametrize("text", ["</script><b>", "<!--<script>", "]]>", "\u2028", "{{ 7 * 7 }}"])
def test_chart_data_come_out_as_they_went_in(text: str) -> None:
    report = split_report()
    copy, chat = report.segments
    page = tree(replace(report, segments=(replace(copy, name=text), chat)))
    assert any(
        row.get("segment") == text
        for chart in charts(page)
        if isinstance(chart, dict)
        for row in chart["data"]["values"]
    )
    heads = {each.children[0] for each in page.all("th", scope="row") if each.children}
    assert ("\\u2028" if text == "\u2028" else text) in heads


def test_segments_of_one_name_stay_apart_in_the_charts() -> None:
    report = split_report()
    twins = tuple(replace(each, name="twin") for each in report.segments)
    page = tree(replace(report, segments=twins))
    legend = next(page.all("ul", **{"class": "legend"}))
    assert legend.words == "● twin (1) ■ twin (2)"
