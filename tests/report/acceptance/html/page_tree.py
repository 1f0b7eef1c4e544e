"""A page as a tree of elements, and what tests look for in it."""

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from html.parser import HTMLParser
from io import StringIO

from rich.console import Console

from outrider.report.acceptance.document import AcceptanceReport
from outrider.report.acceptance.html.page import write_html

VOID = {"meta", "link", "br", "hr", "img", "input"}


@dataclass
class Element:
    tag: str
    attributes: dict[str, str]
    children: list["Element | str"] = field(default_factory=list)

    def all(self, tag: str = "", **wanted: str) -> Iterator["Element"]:
        """Every element below that has the tag and the attributes."""
        for child in self.children:
            if isinstance(child, Element):
                if (not tag or child.tag == tag) and wanted.items() <= child.attributes.items():
                    yield child
                yield from child.all(tag, **wanted)

    def one(self, tag: str = "", **wanted: str) -> "Element":
        (found,) = self.all(tag, **wanted)
        return found

    @property
    def text(self) -> str:
        parts = (each.text if isinstance(each, Element) else each for each in self.children)
        return "".join(parts)

    @property
    def words(self) -> str:
        """The text as it is shown, the gaps between elements as one space."""
        parts = (each.words if isinstance(each, Element) else each for each in self.children)
        return " ".join(" ".join(parts).split())


class TreeBuilder(HTMLParser):
    """Builds a tree, and fails where elements are not properly nested."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.root = Element("", {})
        self.open = [self.root]

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        names = [name for name, _ in attrs]
        assert len(names) == len(set(names)), f"<{tag}> has an attribute twice"
        element = Element(tag, {name: value or "" for name, value in attrs})
        self.open[-1].children.append(element)
        if tag not in VOID:
            self.open.append(element)

    def handle_endtag(self, tag: str) -> None:
        assert self.open[-1].tag == tag, f"</{tag}> closes <{self.open[-1].tag}>"
        self.open.pop()

    def handle_data(self, data: str) -> None:
        self.open[-1].children.append(data)


def written(report: AcceptanceReport) -> str:
    file = StringIO()
    write_html(report, Console(file=file, width=60))
    return file.getvalue()


def tree(report: AcceptanceReport) -> Element:
    builder = TreeBuilder()
    builder.feed(written(report))
    builder.close()
    assert builder.open == [builder.root]
    return builder.root


def section(page: Element, key: str) -> Element:
    return page.one("section", id=key)


def rows(table: Element) -> dict[str, list[str]]:
    """The cells of each row of a table under the row's heading, without the quieter lines."""
    found = {}
    for row in table.one("tbody").all("tr"):
        head, *cells = (each for each in row.children if isinstance(each, Element))
        found[str(head.children[0])] = [cell.words for cell in cells]
    return found


def columns(table: Element) -> list[str]:
    return [each.words for each in table.one("thead").all("th")]


def executable(page: Element) -> list[str]:
    return [each.text for each in page.all("script", type="module")]


def charts(page: Element) -> list[object]:
    return [json.loads(each.text) for each in page.all("script", type="application/json")]
