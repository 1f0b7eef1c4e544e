"""Bars are as long as the share they show."""

from hypothesis import given
from hypothesis import strategies as st

from outrider.report.acceptance.bars import Bar

EIGHTHS = " ▏▎▍▌▋▊▉█"


@given(st.floats(0, 1), st.integers(1, 60))
def test_the_length_is_the_share_to_an_eighth(share: float, width: int) -> None:
    drawn = Bar(share).draw(width)

    eighths = sum(map(EIGHTHS.index, drawn))
    assert len(drawn) <= width
    assert abs(eighths - 8 * width * share) <= 1


@given(st.floats(1e-9, 1), st.integers(1, 60))
def test_what_is_not_0_is_to_be_seen(share: float, width: int) -> None:
    assert Bar(share).draw(width)


def test_zero_and_unknown_draw_nothing() -> None:
    assert Bar(0).draw(10) == Bar(None).draw(10) == ""
