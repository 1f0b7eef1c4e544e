"""The Markdown renders, and reads back as what was meant."""

from collections.abc import Iterator
from dataclasses import replace
from io import StringIO

import pytest
from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt
from markdown_it.token import Token
from rich.console import Console
from tests.report.acceptance.samples import HOSTILE_TEXTS, SAMPLES, hostile, split_report

from outrider.report.acceptance.bars import Bar
from outrider.report.acceptance.blocks import Cell, Table
from outrider.report.acceptance.document import AcceptanceReport
from outrider.report.acceptance.literal import literal
from outrider.report.acceptance.markdown import inline, sentence, write_markdown
from outrider.report.acceptance.outline import outline
from outrider.report.acceptance.used_terms import heading_on_one_line

Rows = list[list[str]]
each_sample = pytest.mark.parametrize("name", SAMPLES)


def render(report: AcceptanceReport) -> str:
    file = StringIO()
    write_markdown(report, Console(file=file, width=40, force_terminal=True))
    return file.getvalue()


def parse(markdown: str) -> list[Token]:
    return MarkdownIt("commonmark").enable(["table", "strikethrough"]).parse(markdown)


def words(inline: Token) -> str:
    return "".join(child.content for child in inline.children or ())


def tables_in(tokens: list[Token]) -> Iterator[Rows]:
    for token in tokens:
        if token.type == "table_open":
            rows: Rows = []
        elif token.type == "tr_open":
            rows.append([])
        elif token.type == "inline" and token.level >= 3 and "rows" in locals() and rows:
            rows[-1].append(words(token))
        elif token.type == "table_close":
            yield rows
            rows = []


def meant(cell: Cell) -> str:
    return cell.draw(12) if isinstance(cell, Bar) else literal(cell).strip()


def meant_rows(table: Table) -> Rows:
    rows = [[heading_on_one_line(column.heading) for column in table.columns]]
    for title, group in table.groups:
        if title:
            rows.append([title, *[""] * (len(table.columns) - 1)])
        rows.extend([meant(cell) for cell in row] for row in group)
    return rows


def assert_tables_read_back(report: AcceptanceReport) -> None:
    expected = [meant_rows(block) for block in outline(report) if isinstance(block, Table)]
    *found, definitions = tables_in(parse(render(report)))

    assert found == expected
    assert definitions[0] == ["symbol", "meaning"]


@each_sample
def test_the_tables_read_back_as_they_were(name: str) -> None:
    assert_tables_read_back(SAMPLES[name]())


@pytest.mark.parametrize("text", HOSTILE_TEXTS, ids=range(len(HOSTILE_TEXTS)))
def test_tables_with_hostile_text_read_back_as_they_were(text: str) -> None:
    assert_tables_read_back(hostile(text))


@pytest.mark.parametrize("text", HOSTILE_TEXTS, ids=range(len(HOSTILE_TEXTS)))
def test_hostile_text_is_shown_as_it_is_and_does_nothing(text: str) -> None:
    tokens = parse(render(hostile(text)))
    inline = [token for token in tokens if token.type == "inline"]
    kinds = {child.type for token in inline for child in token.children or ()}
    html = [token.content.split("\n")[0] for token in tokens if token.type == "html_block"]
    headings = [words(each) for each in inline if each.level == 1 and words(each)]
    whole = literal(text, None)

    assert kinds <= {
        "text",
        "strong_open",
        "strong_close",
        "softbreak",
        "text_special",
        "html_inline",
    }
    assert html == ["<details>", "</details>"]
    assert {
        child.content
        for token in inline
        for child in token.children or ()
        if child.type == "html_inline"
    } <= {"<br>"}
    assert whole in headings  # the verdict, the notes and the like stand by themselves
    assert not {"code_block", "fence", "hr", "blockquote_open", "ordered_list_open"} & {
        token.type for token in tokens
    }


MARKUP = st.text(st.sampled_from("ab1 _*`~[](){}<>|&;#!+-=.:\\/$@\n\t"), max_size=30) | st.text()


@given(MARKUP)
def test_any_line_reads_back_as_a_paragraph_of_that_text(text: str) -> None:
    tokens = parse(f"{sentence(text)}x")
    expected = f"{literal(text, None).strip()}x"

    assert [token.type for token in tokens] == ["paragraph_open", "inline", "paragraph_close"]
    assert words(tokens[1]) == expected


@given(MARKUP)
def test_any_text_reads_back_from_a_cell_of_a_table(text: str) -> None:
    [table] = tables_in(parse(f"| a | b |\n| -- | -- |\n| x{inline(text)}x | c |"))

    assert table == [["a", "b"], [f"x{literal(text)}x", "c"]]


def test_the_order_of_headings_is_that_of_the_text() -> None:
    tokens = parse(render(split_report()))
    titles = [
        words(tokens[place + 1])
        for place, token in enumerate(tokens)
        if token.type == "heading_open" and token.tag == "h2"
    ]

    assert titles == [
        *("Flags", "Notes", "Segments", "kind=copy", "kind=chat"),
        *("Keys tried for a split", "Records"),
    ]


def test_numbers_are_set_to_the_right_and_words_to_the_left() -> None:
    lines = render(split_report()).splitlines()
    header = next(line for line in lines if line.startswith("| segment |"))
    alignments = lines[lines.index(header) + 1].strip("| ").split(" | ")

    assert alignments == [":--", *["--:"] * 10]


def test_definitions_are_folded_away() -> None:
    text = render(split_report())

    assert text.count("<summary>Definitions</summary>") == 1
    assert "## Definitions" not in text
    assert text.rstrip().endswith("</details>")


def test_a_console_neither_wraps_nor_colours() -> None:
    report = split_report()
    text = render(report)

    assert "\x1b" not in text
    assert f"**{report.verdict}**" in text.splitlines()


def test_the_reasons_of_what_is_unknown_follow_their_table() -> None:
    text = render(SAMPLES["estimated"]())

    assert "| H_0/S % | – [a] |" in text
    assert "[a] llama.cpp tells no histogram<br>" in text.splitlines()


def test_a_report_without_definitions_has_nothing_to_fold() -> None:
    assert "<details>" not in render(replace(split_report(), definitions=()))
