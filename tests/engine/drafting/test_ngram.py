import gc

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from outrider.engine.drafting.ngram import NgramDrafter
from outrider.engine.sampling import Sampling, SamplingParameters
from outrider.engine.sequence import Sequence
from outrider.errors import InvalidSetting
from outrider.records.arm import Arm, TieRule

TIES: tuple[TieRule, ...] = ("recent", "earliest")


def sequence_of(tokens: list[int], prompt_tokens: int | None = None) -> Sequence:
    """A running sequence whose first `prompt_tokens` tokens (default: all) are its prompt."""
    cut = len(tokens) if prompt_tokens is None else prompt_tokens
    sampling = Sampling.seeded(SamplingParameters())
    sequence = Sequence("r", tokens[:cut], max_tokens=len(tokens) + 1, sampling=sampling)
    sequence.append(tokens[cut:])
    return sequence


def drafted(
    tokens: list[int], k: int, shortest: int, longest: int, tie: TieRule, limit: int | None = None
) -> list[int]:
    drafter = NgramDrafter(k, shortest, longest, tie)
    draft = drafter.propose([sequence_of(tokens)], np.array([k if limit is None else limit]))
    length = int(draft.lengths[0])
    assert (draft.tokens[0, length:] == -1).all()
    return [int(token) for token in draft.tokens[0, :length]]


def brute_force(
    tokens: list[int], limit: int, shortest: int, longest: int, tie: TieRule
) -> list[int]:
    """The rule itself, over lists: for each n from the longest, look at every place."""
    for n in range(longest, shortest - 1, -1):
        ending = tokens[-n:]
        places = [at for at in range(len(tokens) - n) if tokens[at : at + n] == ending]
        if places:
            at = places[-1] if tie == "recent" else places[0]
            return tokens[at + n : at + n + limit]
    return []


@st.composite
def periodic(draw: st.DrawFn) -> list[int]:
    """A repeated pattern with at most a few tokens changed: many matches, some broken."""
    pattern = draw(st.lists(st.integers(0, 3), min_size=1, max_size=7))
    tokens = (pattern * 12)[: draw(st.integers(1, 60))]
    for at, token in draw(
        st.dictionaries(st.integers(0, 59), st.integers(0, 3), max_size=3)
    ).items():
        if at < len(tokens):
            tokens[at] = token
    return tokens


HISTORIES = st.one_of(
    st.lists(st.integers(0, 1), min_size=1, max_size=60),
    st.lists(st.integers(0, 3), min_size=1, max_size=60),
    st.lists(st.integers(0, 50_000), min_size=1, max_size=20),
    periodic(),
)
RANGES = st.tuples(st.integers(1, 7), st.integers(1, 7)).map(sorted)


@settings(deadline=None, max_examples=400)
@given(
    tokens=HISTORIES,
    shortest_longest=RANGES,
    k=st.integers(1, 9),
    limit=st.integers(0, 9),
    tie=st.sampled_from(TIES),
)
@example(tokens=[0], shortest_longest=[1, 1], k=1, limit=1, tie="recent")
@example(tokens=[0] * 40, shortest_longest=[1, 7], k=8, limit=8, tie="earliest")
@example(tokens=[0] * 40, shortest_longest=[7, 7], k=8, limit=8, tie="recent")
def test_the_draft_is_what_brute_force_finds(
    tokens: list[int], shortest_longest: list[int], k: int, limit: int, tie: TieRule
) -> None:
    shortest, longest = shortest_longest
    limit = min(limit, k)
    expected = brute_force(tokens, limit, shortest, longest, tie)
    assert drafted(tokens, k, shortest, longest, tie, limit) == expected


@pytest.mark.parametrize(("tie", "expected"), [("recent", [8, 1, 2]), ("earliest", [7, 1, 2])])
def test_the_tie_rule_chooses_among_occurrences_of_equal_length(
    tie: TieRule, expected: list[int]
) -> None:
    assert drafted([1, 2, 7, 1, 2, 8, 1, 2], 3, 2, 2, tie) == expected


@pytest.mark.parametrize("tie", TIES)
def test_a_longer_match_beats_a_shorter_one_wherever_it_is(tie: TieRule) -> None:
    in_the_middle = [3, 9, 1, 2, 3, 4, 3, 8, 1, 2, 3]
    assert drafted(in_the_middle, 2, 1, 3, tie) == [4, 3]


def test_the_longest_n_is_capped_so_that_the_most_recent_may_win_with_less_context() -> None:
    tokens = [1, 2, 3, 4, 9, 2, 3, 5, 1, 2, 3]
    assert drafted(tokens, 1, 1, 3, "recent") == [4]
    assert drafted(tokens, 1, 1, 2, "recent") == [5]


@pytest.mark.parametrize(("tie", "expected"), [("recent", [5]), ("earliest", [5, 5, 5])])
def test_a_match_may_overlap_the_ending_and_stops_at_the_end_of_the_history(
    tie: TieRule, expected: list[int]
) -> None:
    assert drafted([5, 5, 5, 5, 5], 4, 2, 2, tie) == expected


@pytest.mark.parametrize("tokens", [[1], [1, 2, 3], [1, 2, 1]])
def test_nothing_is_drafted_without_a_match_of_the_minimum_length(tokens: list[int]) -> None:
    assert drafted(tokens, 4, 2, 4, "recent") == []


def test_output_tokens_are_searched_like_prompt_tokens() -> None:
    drafter = NgramDrafter(2, 2, 3)
    batch = [sequence_of([1, 2, 3, 4, 1, 2], prompt_tokens=cut) for cut in (1, 3, 6)]
    draft = drafter.propose(batch, np.array([2, 2, 2]))
    assert draft.tokens.tolist() == [[3, 4]] * 3


def test_each_sequence_of_a_batch_has_its_own_draft_and_its_own_limit() -> None:
    drafter = NgramDrafter(3, 1, 2)
    batch = [sequence_of(tokens) for tokens in ([1, 2, 3, 4, 1], [6, 7], [1, 2, 3, 4, 1], [5, 5])]
    draft = drafter.propose(batch, np.array([3, 3, 1, 0]))
    assert draft.tokens.dtype == np.int32
    assert draft.tokens.tolist() == [[2, 3, 4], [-1, -1, -1], [2, -1, -1], [-1, -1, -1]]
    assert draft.lengths.tolist() == [3, 0, 1, 0]
    assert draft.probabilities is None


def test_the_length_of_the_match_is_told() -> None:
    drafter = NgramDrafter(3, 1, 3)
    histories = ([9, 1, 2, 3, 4, 1, 2, 3], [1, 2, 3, 4, 1, 2], [5, 1, 2, 6, 2], [6, 7])
    draft = drafter.propose([sequence_of(tokens) for tokens in histories], np.full(4, 3))
    assert draft.matched_tokens is not None
    assert draft.matched_tokens.tolist() == [3, 2, 1, 0]
    chosen = draft.select(np.array([False, True, False, True]))
    assert chosen.matched_tokens is not None
    assert chosen.matched_tokens.tolist() == [2, 0]


@pytest.mark.parametrize("fill", [False, True])
def test_a_match_too_short_to_draft_from_is_none(fill: bool) -> None:
    drafter = NgramDrafter(3, 2, 3, fill=fill)
    draft = drafter.propose([sequence_of([5, 1, 2, 6, 2])], np.array([3]))
    assert draft.matched_tokens is not None
    assert draft.matched_tokens.tolist() == [0]


@settings(deadline=None, max_examples=100)
@given(
    tokens=HISTORIES,
    first=st.integers(1, 8),
    runs=st.lists(st.integers(1, 5), min_size=1),
    tie=st.sampled_from(TIES),
)
def test_a_draft_in_a_sequence_that_grows_is_that_of_the_whole_history(
    tokens: list[int], first: int, runs: list[int], tie: TieRule
) -> None:
    drafter = NgramDrafter(4, 1, 3, tie)
    prompt, rest = tokens[:first], tokens[first:]
    sampling = Sampling.seeded(SamplingParameters())
    sequence = Sequence("r", prompt, max_tokens=len(tokens) + 1, sampling=sampling)
    for run in [0, *runs]:
        sequence.append(rest[:run])
        rest = rest[run:]
        for _ in range(2):  # the second time nothing is new
            draft = drafter.propose([sequence], np.array([4]))
            expected = brute_force(sequence.token_ids.tolist(), 4, 1, 3, tie)
            assert draft.tokens[0, : draft.lengths[0]].tolist() == expected


@settings(deadline=None)
@given(tokens=HISTORIES, limit=st.integers(0, 5), tie=st.sampled_from(TIES))
def test_a_filled_draft_is_as_long_as_it_may_be_and_repeats_the_last_token(
    tokens: list[int], limit: int, tie: TieRule
) -> None:
    drafter = NgramDrafter(5, 2, 3, tie, fill=True)
    draft = drafter.propose([sequence_of(tokens)], np.array([limit]))
    found = brute_force(tokens, limit, 2, 3, tie)
    expected = found + [tokens[-1]] * (limit - len(found))
    assert draft.lengths[0] == limit
    assert draft.tokens[0].tolist() == expected + [-1] * (5 - limit)


def test_an_arm_says_whether_drafts_are_filled() -> None:
    assert NgramDrafter.from_arm(Arm("a", "ngram", 4, 2, 3, ngram_fill=True)).fill
    assert not NgramDrafter.from_arm(Arm("a", "ngram", 4, 2, 3)).fill


def test_what_a_drafter_knows_of_a_sequence_goes_with_it() -> None:
    drafter = NgramDrafter(2, 1, 2)
    sequence = sequence_of([1, 2, 1])
    drafter.propose([sequence], np.array([2]))
    assert len(drafter._indexes) == 1
    del sequence
    gc.collect()
    assert not drafter._indexes


@pytest.mark.parametrize(
    ("k", "shortest", "longest"), [(0, 1, 2), (-1, 1, 2), (4, 0, 2), (4, 3, 2), (4, -2, -1)]
)
def test_a_setting_outside_its_range_is_refused(k: int, shortest: int, longest: int) -> None:
    with pytest.raises(InvalidSetting):
        NgramDrafter(k, shortest, longest)


def test_an_unknown_tie_rule_is_refused_with_the_known_ones() -> None:
    with pytest.raises(InvalidSetting, match="recent or earliest"):
        NgramDrafter(4, 2, 4, "latest")  # type: ignore[arg-type]


@pytest.mark.parametrize(("shortest", "longest"), [(None, 4), (2, None)])
def test_an_arm_without_a_full_range_is_refused(shortest: int | None, longest: int | None) -> None:
    with pytest.raises(InvalidSetting, match="prompt_lookup_min and prompt_lookup_max"):
        NgramDrafter.from_arm(Arm("a", "ngram", 4, shortest, longest))
