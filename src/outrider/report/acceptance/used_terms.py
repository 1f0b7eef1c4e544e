"""Which definitions a report needs."""

import re
from collections.abc import Iterable, Iterator

from outrider.report.acceptance.blocks import Block, Cell, Heading, Items, Paragraph, Table
from outrider.report.cells import MISSING
from outrider.report.definitions import Definition

_SHORTEST_WORD = 4
"""Shorter names are symbols, and M is not m."""


def used_terms(
    definitions: Iterable[Definition], blocks: Iterable[Block]
) -> tuple[Definition, ...]:
    """Return the definitions of those symbols that the blocks show, in their order."""
    words = "\n".join(_words(blocks))
    return tuple(entry for entry in definitions if _shown(entry.symbol, words))


def _shown(symbol: str, words: str) -> bool:
    for name in re.split(r",\s*", symbol):
        pattern = re.escape(name.removesuffix("s")).replace("_j", r"_\w")
        letter_case = re.IGNORECASE if len(name) >= _SHORTEST_WORD else 0
        if re.search(rf"(?<!\w){pattern}s?(?!\w)", words, letter_case):
            return True
    return False


def _words(blocks: Iterable[Block]) -> Iterator[str]:
    for block in blocks:
        match block:
            case Heading(text=text) | Paragraph(text=text):
                yield text
            case Items(entries=entries):
                for entry in entries:
                    yield entry.lead
                    yield from entry.lines
            case Table(columns=columns, groups=groups, footnotes=footnotes):
                yield from (heading_on_one_line(column.heading) for column in columns)
                yield from footnotes
                for _, rows in groups:
                    for row in rows:
                        yield from _cell_words(row)


def _cell_words(row: Iterable[Cell]) -> Iterator[str]:
    for cell in row:
        if isinstance(cell, str):
            yield cell
            if cell.endswith(")") and MISSING in cell:
                yield "intervals"


def heading_on_one_line(heading: str) -> str:
    """Return the heading with its breaks taken back.

    >>> heading_on_one_line("cover-\\nage %")
    'coverage %'
    """
    return heading.replace("-\n", "").replace("\n", " ")
