"""A definition is given for what is shown, and for nothing else."""

import pytest

from outrider.report.acceptance.blocks import Block, Column, Item, Items, Paragraph, Table
from outrider.report.acceptance.used_terms import used_terms
from outrider.report.definitions import Definition


def defined(symbol: str, *blocks: Block) -> bool:
    return bool(used_terms([Definition(symbol, "meaning")], blocks))


@pytest.mark.parametrize(
    ("symbol", "words", "used"),
    [
        ("M", "M = 2", True),
        ("M", "2 ms, Mean", False),
        ("D, A", "of A and others", True),
        ("H_j", "steps that were H_0", True),
        ("H_0/S", "H_0/S is low", True),
        ("H_0/S", "H_K/S is low", False),
        ("at risk", "12 At risk", True),
        ("steps", "one step", True),
        ("steps", "stepwise", False),
    ],
)
def test_a_symbol_is_a_word_of_its_own(symbol: str, words: str, used: bool) -> None:
    assert defined(symbol, Paragraph(words)) is used


def test_symbols_are_found_in_tables_and_lists_and_broken_headings() -> None:
    table = Table((Column("cover-\nage %"),), (("", (("A/D",),)),), ("naive is lower",))

    assert defined("coverage", table)
    assert defined("A/D", table)
    assert defined("naive", table)
    assert defined("K", Items((Item("lead", ("at K = 2",)),)))
    assert not defined("survival", table)


def test_an_interval_in_a_cell_asks_for_the_definition_of_intervals() -> None:
    def of(cell: str) -> Table:
        return Table((Column("x"),), (("", ((cell,),)),))

    assert defined("intervals", of("2.35 (2.10–2.50)"))
    assert not defined("intervals", of("2.35"))
