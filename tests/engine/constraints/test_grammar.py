"""Constraints against brute force: every string that a small regex matches, written out."""

import re
from functools import cache
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from llguidance import LLMatcher, LLParserLimits
from numpy.typing import NDArray
from tests.engine.constraints.letters import END, SIZE, WORDS, begun, ids_of, vocabulary_of
from tests.engine.constraints.wishes import WISHES

from outrider.engine.constraints.compiler import ConstraintCompiler
from outrider.engine.constraints.grammar import GrammarConstraint
from outrider.engine.constraints.spec import ConstraintSpec

TOKENS = ("a", "b", "ab", "ba", "aab")
STOP = len(TOKENS)
COMPILER = ConstraintCompiler(vocabulary_of(TOKENS, STOP + 2, (STOP,)))
LONGEST = 11
FAR = 4
"""With a token of three letters and four that complete it, as long as the longest string."""
STRINGS = ["".join(each) for n in range(LONGEST + 1) for each in product("ab", repeat=n)]


@st.composite
def regexes(draw: st.DrawFn) -> str:
    """At most four letters, so that what can be completed can be so with four more."""

    def part(letters: int) -> str:
        if letters == 1:
            return draw(st.sampled_from("ab")) + draw(st.sampled_from(["", "", "*", "?"]))
        left = draw(st.integers(1, letters - 1))
        joint = draw(st.sampled_from(["", "", "|"]))
        inside = f"{part(left)}{joint}{part(letters - left)}"
        # A loop within a loop takes Python's re for ever.
        quantifiers = ["", "?"] if set("*+") & set(inside) else ["", "*", "+", "?"]
        return f"({inside})" + draw(st.sampled_from(quantifiers))

    return part(draw(st.integers(1, 4)))


@cache
def beginnings(regex: str) -> tuple[frozenset[str], frozenset[str]]:
    """All short strings that the regex matches, and all that begin one."""
    pattern = re.compile(regex)
    matched = frozenset(text for text in STRINGS if pattern.fullmatch(text))
    return matched, frozenset(text[:end] for text in matched for end in range(len(text) + 1))


def allowed_after(regex: str, text: str) -> list[bool]:
    matched, begun_ones = beginnings(regex)
    return [*(text + token in begun_ones for token in TOKENS), text in matched, False]


def is_over(regex: str, text: str) -> bool:
    allowed = allowed_after(regex, text)
    return allowed[STOP] and not any(allowed[:STOP])


@settings(deadline=None)
@given(regexes(), st.lists(st.lists(st.integers(0, STOP), max_size=3), max_size=3), st.data())
def test_what_may_come_is_what_brute_force_says_after_every_beginning_of_a_draft(
    regex: str, drafts: list[list[int]], data: st.DataObject
) -> None:
    constraint = COMPILER.compile(ConstraintSpec("regex", regex)).start()
    text = ""
    for draft in drafts:
        rows = np.ones((len(draft) + 1, STOP + 2), np.bool_)
        standing = constraint.allow(np.array(draft, np.int32), rows)
        so_far = text
        for i in range(standing + 1):
            over = i > 0 and (draft[i - 1] == STOP or is_over(regex, so_far))
            assert rows[i].tolist() == (
                [True] * (STOP + 2) if over else allowed_after(regex, so_far)
            )
            if over:
                assert i == standing
            elif i < len(draft):
                assert (i < standing) == allowed_after(regex, so_far)[draft[i]]
                so_far += "" if draft[i] == STOP else TOKENS[draft[i]]
                if len(so_far) > FAR:
                    break
        token = data.draw(st.sampled_from([t for t in range(STOP) if rows[0, t]] or [STOP]))
        if token == STOP or len(text) + len(TOKENS[token]) > FAR:
            break
        constraint.advance(token)
        text += TOKENS[token]
        assert constraint.may_end == (text in beginnings(regex)[0])
        assert constraint.ended == is_over(regex, text)
        assert constraint.failure is None
        if constraint.ended:
            break


def look(
    constraint: GrammarConstraint, draft: str | list[int] = ""
) -> tuple[int, NDArray[np.bool_]]:
    tokens = ids_of(draft) if isinstance(draft, str) else draft
    rows = np.ones((len(tokens) + 1, SIZE), np.bool_)
    return constraint.allow(np.array(tokens, np.int32), rows), rows


@pytest.mark.parametrize("wish", WISHES)
def test_looking_ahead_leaves_no_trace(wish: str) -> None:
    random = np.random.default_rng(3)
    spec, _ = WISHES[wish]
    constraint, told = begun(spec), list[int]()
    while not constraint.ended and len(told) < 30:
        _, rows = look(constraint)
        fresh = begun(spec)
        for token in told:
            fresh.advance(token)
        draft = random.choice(np.flatnonzero(rows[0]), 1).tolist()
        draft += random.integers(0, SIZE, 4).tolist()
        seen, expected = look(constraint, draft), look(fresh, draft)
        assert seen[0] == expected[0] >= 1
        np.testing.assert_array_equal(seen[1][: seen[0] + 1], expected[1][: seen[0] + 1])
        assert (constraint.may_end, constraint.ended) == (fresh.may_end, fresh.ended)
        continuing = np.flatnonzero(rows[0, :END])
        told.append(int(random.choice(continuing)))
        constraint.advance(told[-1])


def test_properties_come_in_the_order_of_the_schema() -> None:
    constraint = begun(
        ConstraintSpec("json", '{"required":["b","a"],"properties":{"b":true,"a":true}}')
    )
    for token in ids_of('{"'):
        constraint.advance(token)
    _, rows = look(constraint)
    assert [WORDS[token] for token in np.flatnonzero(rows[0])] == ["b"]


def test_a_drafted_end_stands_where_the_grammar_may_end_and_nothing_after_it() -> None:
    constraint = begun(ConstraintSpec("regex", "ab*"))
    assert look(constraint, [END])[0] == 0
    standing, rows = look(constraint, [*ids_of("ab"), END, *ids_of("b")])
    assert standing == 3
    assert rows[3].all()


def test_a_draft_is_cut_where_nothing_can_be_added() -> None:
    standing, rows = look(begun(ConstraintSpec("regex", "ab")), [*ids_of("ab"), END])
    assert standing == 2
    assert rows[2].all()


def test_without_an_end_the_output_goes_on_until_nothing_can_be_added() -> None:
    constraint = begun(ConstraintSpec("regex", "ab?"), ignore_eos=True)
    constraint.advance(WORDS.index("a"))
    assert constraint.may_end
    assert not constraint.ended
    standing, rows = look(constraint, [END])
    assert standing == 0
    assert [WORDS[token] for token in np.flatnonzero(rows[0])] == ["b"]
    constraint.advance(WORDS.index("b"))
    assert constraint.ended


@pytest.mark.parametrize("ignore_eos", [False, True])
def test_an_output_ends_too_where_only_the_vocabulary_cannot_go_on(ignore_eos: bool) -> None:
    # No token has a z.
    constraint = begun(ConstraintSpec("regex", "a(bz?|z)?"), ignore_eos=ignore_eos)
    standing, rows = look(constraint, "abb")
    assert standing == 2
    assert rows[2].all()
    ended = []
    for token in ids_of("ab"):
        constraint.advance(token)
        ended.append(constraint.ended)
    assert ended == [False, True]
    assert constraint.failure is None


def test_a_grammar_that_no_token_follows_fails_where_it_is_reached_and_not_before() -> None:
    constraint = begun(ConstraintSpec("regex", "a[ab]z"))
    standing, rows = look(constraint, "aba")
    assert standing == 1  # after "ab" nothing is known
    assert [WORDS[token] for token in np.flatnonzero(rows[1])] == ["a", "b"]
    failures = [constraint.failure]
    for token in ids_of("ab"):
        constraint.advance(token)
        failures.append(constraint.failure)
    assert failures == [None] * 3
    look(constraint)
    assert constraint.failure == "the grammar goes on where no token of the model does"
    assert not constraint.may_end
    assert not constraint.ended


@pytest.mark.parametrize("ahead", [0, 1, 4])
def test_an_error_within_the_grammar_fails_where_plain_decoding_meets_it(ahead: int) -> None:
    # Every a is a sum in many ways, more and more of them.
    limits = LLParserLimits(max_items_in_row=20, verbose_errors=False)
    text = 'start: e\ne: e e | "a"'
    matcher = LLMatcher(vocabulary_of().tokens, text, log_level=0, limits=limits)
    constraint = GrammarConstraint(matcher, vocabulary_of())
    a = WORDS.index("a")
    seen = []
    for _ in range(20):
        standing, rows = look(constraint, [a] * ahead)
        if constraint.failure is not None:
            break
        assert rows[: standing + 1, a].all()
        seen.append(standing)
        constraint.advance(a)
    assert constraint.failure is not None
    assert constraint.failure.startswith("the grammar cannot go on: ")
    assert "\n" not in constraint.failure
    assert not constraint.ended
    assert len(seen) == 9
    # The last token before the error may not stand, since what follows it is not known.
    assert seen == [min(ahead, max(8 - told, 0)) for told in range(9)]
