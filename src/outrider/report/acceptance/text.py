"""The report on acceptance for people to read, on a terminal or as plain text."""

from rich.console import Console
from rich.padding import Padding
from rich.table import Table as Grid
from rich.text import Text

from outrider.report.acceptance.blocks import Block, Heading, Items, Paragraph, Table, Terms, Tone
from outrider.report.acceptance.document import AcceptanceReport
from outrider.report.acceptance.layout import lay_out
from outrider.report.acceptance.literal import literal
from outrider.report.acceptance.outline import outline

_INDENT = 2
_STYLES: dict[Tone, str] = {
    "plain": "",
    "verdict": "bold",
    "warning": "bold yellow",
    "aside": "dim",
}


def write_text(report: AcceptanceReport, console: Console) -> None:
    """Write the report in as many columns as the console has, coloured only on a terminal."""
    for block in outline(report):
        _write(block, console)


def _write(block: Block, console: Console) -> None:
    match block:
        case Heading():
            console.print()
            indent = _INDENT if block.level > 2 else 0  # noqa: PLR2004
            _line(literal(block.text), console, style="bold", indent=indent)
        case Paragraph():
            _line(literal(block.text, None), console, style=_STYLES[block.tone])
        case Items():
            _items(block, console)
        case Table():
            _table(block, console)
        case Terms():
            grid = Grid.grid(padding=(0, 2))
            for entry in block.entries:
                grid.add_row(Text(entry.symbol), Text(entry.meaning), style="dim")
            console.print(Padding(grid, (0, 0, 0, _INDENT), expand=False))


def _table(table: Table, console: Console) -> None:
    for place, laid_out in enumerate(lay_out(table, console.width - _INDENT)):
        if place:
            console.print()
        console.print(Padding(laid_out, (0, 0, 0, _INDENT), expand=False))
    for footnote in table.footnotes:
        _line(literal(footnote, None), console, style="dim")


def _items(items: Items, console: Console) -> None:
    style = _STYLES[items.tone]
    for item in items.entries:
        if item.lead:
            _line(literal(item.lead), console, style=style)
            for line in item.lines:
                _line(literal(line, None), console, indent=2 * _INDENT)
        else:
            grid = Grid.grid(padding=(0, 1))
            for line in item.lines:
                grid.add_row("-", Text(literal(line, None), overflow="fold"), style=style)
            console.print(Padding(grid, (0, 0, 0, _INDENT), expand=False))


def _line(line: str, console: Console, style: str = "", indent: int = _INDENT) -> None:
    console.print(
        Padding(Text(line, style=style, overflow="fold"), (0, 0, 0, indent), expand=False)
    )
