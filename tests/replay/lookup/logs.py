"""Logged answers made at random, many of them repetitive."""

from hypothesis import strategies as st
from tests.replay.answers import answer_of

from outrider.replay.answer import LoggedAnswer


@st.composite
def answers(draw: st.DrawFn) -> LoggedAnswer:
    """Text over a few tokens, often periodic with some tokens changed."""
    letters = draw(st.sampled_from([1, 2, 4, 50]))
    pattern = draw(st.lists(st.integers(0, letters), min_size=1, max_size=9))
    tokens = (pattern * 40)[: draw(st.integers(2, 90))]
    tokens += [0] * (2 - len(tokens))
    for at, token in draw(
        st.dictionaries(st.integers(0, 89), st.integers(0, letters), max_size=12)
    ).items():
        if at < len(tokens):
            tokens[at] = token
    cut = draw(st.integers(1, len(tokens) - 1))
    more = draw(st.one_of(st.none(), st.integers(0, 20)))
    limit = None if more is None else len(tokens) - cut + more
    return answer_of(tokens[:cut], tokens[cut:], limit)
