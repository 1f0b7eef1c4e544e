"""Words from outside do nothing where they are shown."""

import unicodedata

from hypothesis import given
from hypothesis import strategies as st

from outrider.report.acceptance.literal import literal


@given(st.text())
def test_nothing_in_it_acts_and_all_of_it_can_be_written(text: str) -> None:
    shown = literal(text, None)

    assert not {unicodedata.category(each) for each in shown} & {"Cc", "Cf", "Cs", "Zl", "Zp"}
    shown.encode()


@given(st.text(st.characters(categories=("L", "N", "P", "S", "Zs")), max_size=200))
def test_harmless_text_stays_as_it_is(text: str) -> None:
    assert literal(text) == text


def test_a_lone_surrogate_is_escaped() -> None:
    assert literal("a\udcffb") == "a\\udcffb"


def test_what_is_very_long_is_cut_with_a_sign() -> None:
    assert literal("x" * 500, 10) == "xxxxxxxxx…"
