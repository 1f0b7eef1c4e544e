"""The report on acceptance as GitHub-flavoured Markdown."""

import re
from collections.abc import Iterator

from rich.console import Console

from outrider.report.acceptance.bars import Bar
from outrider.report.acceptance.blocks import Block, Cell, Heading, Items, Paragraph, Table, Terms
from outrider.report.acceptance.document import AcceptanceReport
from outrider.report.acceptance.literal import literal
from outrider.report.acceptance.outline import outline
from outrider.report.acceptance.used_terms import heading_on_one_line

_BAR_WIDTH = 12
_SPECIAL = re.compile(
    r"[\\`*<>|~$&]"
    r"|(?<![^\W_])_|_(?![^\W_])"  # between letters it is only itself, as in H_0
    r"|\](?=[(\[:])|\[(?=[ xX]\])"  # what would make a link, or a box to tick
)
_OPENING = re.compile(r"^(\d*)([#+\-=.)])", re.ASCII)


def write_markdown(report: AcceptanceReport, console: Console) -> None:
    """Write the report, neither wrapped nor coloured."""
    text = "\n\n".join(_written(block) for block in _folded(outline(report)))
    console.file.write(f"{text}\n")


def _folded(blocks: Iterator[Block]) -> Iterator[Block]:
    """Leave out the heading of the definitions, as what folds them away has it too."""
    waiting: Block | None = None
    for block in blocks:
        if waiting is not None and not isinstance(block, Terms):
            yield waiting
        waiting = block
    if waiting is not None:
        yield waiting


def _written(block: Block) -> str:
    match block:
        case Heading():
            return f"{'#' * block.level} {inline(block.text)}"
        case Paragraph():
            text = sentence(block.text)
            return f"**{text}**" if block.tone in ("verdict", "warning") else text
        case Items():
            return "\n".join(_items(block))
        case Table():
            notes = "<br>\n".join(sentence(note) for note in block.footnotes)
            return "\n".join(_table(block)) + (f"\n\n{notes}" if notes else "")
        case Terms():
            rows = (f"| {inline(each.symbol)} | {inline(each.meaning)} |" for each in block.entries)
            return "\n".join(
                (
                    "<details>\n<summary>Definitions</summary>\n",
                    "| symbol | meaning |\n| :-- | :-- |",
                    *rows,
                    "\n</details>",
                )
            )


def _items(items: Items) -> Iterator[str]:
    for item in items.entries:
        if not item.lead:
            yield from (f"- {sentence(line)}" for line in item.lines)
            continue
        yield f"- **{inline(item.lead)}**"
        yield from (f"  - {sentence(line)}" for line in item.lines)


def _table(table: Table) -> Iterator[str]:
    headings = (inline(heading_on_one_line(column.heading)) for column in table.columns)
    yield _row(headings)
    bars = [
        any(isinstance(row[place], Bar) for _, rows in table.groups for row in rows)
        for place in range(len(table.columns))
    ]
    yield _row(
        ":--" if column.words or bar else "--:"
        for column, bar in zip(table.columns, bars, strict=True)
    )
    for title, rows in table.groups:
        if title:
            yield _row((f"**{inline(title)}**", *[""] * (len(table.columns) - 1)))
        for row in rows:
            yield _row(map(_cell, row))


def _row(cells: Iterator[str] | tuple[str, ...]) -> str:
    return f"| {' | '.join(cells)} |"


def _cell(cell: Cell) -> str:
    return cell.draw(_BAR_WIDTH) if isinstance(cell, Bar) else inline(cell)


def inline(text: str, longest: int | None = 200) -> str:
    """Return the text so that Markdown shows it as it is."""
    return _SPECIAL.sub(lambda found: f"\\{found[0]}", literal(text, longest))


def sentence(text: str) -> str:
    """Return a whole line, which must not look like a heading or a list either."""
    return _OPENING.sub(r"\1\\\2", inline(text, None).strip())
