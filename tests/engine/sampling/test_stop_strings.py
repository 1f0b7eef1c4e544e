"""Texts over two letters, cut anywhere, against reading the whole text letter by letter."""

from hypothesis import given
from hypothesis import strategies as st

from outrider.engine.sampling.stop_strings import StopStrings

STOPS = st.lists(st.text("ab", min_size=1, max_size=4), min_size=1, max_size=3)
PIECES = st.lists(st.text("ab", max_size=5), max_size=8)


def expected(text: str, stops: list[str], from_: int, *, include: bool) -> tuple[str, str | None]:
    """The text up to the first stop string that ends after `from_`, and that string."""
    for end in range(from_ + 1, len(text) + 1):
        complete = [stop for stop in stops if text[:end].endswith(stop)]
        if complete:
            stop = max(complete, key=len)
            return text[: end if include else end - len(stop)], stop
    return text, None


@given(pieces=PIECES, stops=STOPS, include=st.booleans(), pieces_without_stop=st.integers(0, 4))
def test_the_text_ends_where_a_stop_string_is_first_complete(
    pieces: list[str], stops: list[str], include: bool, pieces_without_stop: int
) -> None:
    strings = StopStrings(stops, include=include)
    text, stop = "", None
    for i, piece in enumerate(pieces):
        shown = strings.feed(piece, may_stop=i >= pieces_without_stop)
        text += shown.text
        if stop := shown.stop:
            break
    else:
        text += strings.rest()
    from_ = sum(map(len, pieces[:pieces_without_stop]))
    assert (text, stop) == expected("".join(pieces), stops, from_, include=include)


@given(pieces=PIECES, stops=STOPS)
def test_all_that_cannot_become_a_stop_string_is_shown_at_once(
    pieces: list[str], stops: list[str]
) -> None:
    strings = StopStrings(stops, include=False)
    text = shown_text = ""
    for piece in pieces:
        shown = strings.feed(piece)
        if shown.stop:
            break
        text, shown_text = text + piece, shown_text + shown.text
        held = text[len(shown_text) :]
        beginnings = [stop[:length] for stop in stops for length in range(len(stop))]
        assert held == max((each for each in beginnings if text.endswith(each)), key=len)


def test_without_stop_strings_everything_is_shown() -> None:
    assert StopStrings((), include=False).feed("text").text == "text"


def test_nothing_is_held_back_where_stop_strings_are_shown() -> None:
    strings = StopStrings(("</end>",), include=True)
    assert strings.feed("so </e").text == "so </e"
    shown = strings.feed("nd> and more")
    assert (shown.text, shown.stop) == ("nd>", "</end>")
    assert strings.rest() == ""


def test_the_first_complete_counts_not_the_first_listed() -> None:
    shown = StopStrings(("abc", "b"), include=False).feed("abc")
    assert (shown.text, shown.stop) == ("a", "b")
