"""What a report consists of, before it is text, Markdown or anything else to read."""

from dataclasses import dataclass
from typing import Literal, TypeAlias

from outrider.report.acceptance.bars import Bar
from outrider.report.definitions import Definition

Cell: TypeAlias = str | Bar
Tone: TypeAlias = Literal["plain", "verdict", "warning", "aside"]


@dataclass(frozen=True, slots=True)
class Heading:
    """A title: of the report (1), of a part of it (2) or within a part (3)."""

    text: str
    level: Literal[1, 2, 3]


@dataclass(frozen=True, slots=True)
class Paragraph:
    """Some sentences; an aside is what can be skipped at first."""

    text: str
    tone: Tone = "plain"


@dataclass(frozen=True, slots=True)
class Item:
    """Something to point out, under a short lead, with further lines that belong to it."""

    lead: str
    lines: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Items:
    """A list of items."""

    entries: tuple[Item, ...]
    tone: Tone = "plain"


@dataclass(frozen=True, slots=True)
class Column:
    """The heading of a column, and whether what it holds reads as words rather than numbers.

    A newline in a heading is where it may be broken, "-" before it is then no part of the word.
    """

    heading: str
    words: bool = False


def columns(*headings: str) -> tuple[Column, ...]:
    """Return the columns under the headings, numbers but for the first, which holds words."""
    return tuple(Column(heading, words=place == 0) for place, heading in enumerate(headings))


@dataclass(frozen=True, slots=True)
class Table:
    """Rows of cells under headings; the first column names the row.

    `groups` are rows with the title that they stand under, "" for none. `footnotes` explain the
    marks in the cells.
    """

    columns: tuple[Column, ...]
    groups: tuple[tuple[str, tuple[tuple[Cell, ...], ...]], ...]
    footnotes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Terms:
    """Definitions, for those who need them."""

    entries: tuple[Definition, ...]


Block: TypeAlias = Heading | Paragraph | Items | Table | Terms
