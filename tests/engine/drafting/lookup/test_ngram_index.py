import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from outrider.engine.drafting.lookup.ngram_index import DEPTH, NgramIndex

Place = tuple[int, int]


def brute_force(tokens: list[int], longest: int) -> list[Place]:
    """For each n whose last n-gram occurred before: where its first and last earlier one end."""
    found = []
    for n in range(1, longest + 1):
        ending = tokens[-n:]
        ends = [at + n - 1 for at in range(len(tokens) - n) if tokens[at : at + n] == ending]
        if not ends:
            break
        found.append((ends[0], ends[-1]))
    return found


def found(index: NgramIndex) -> list[Place]:
    depth = int(index.state[DEPTH])
    return [(int(first), int(last)) for first, last in index.found[:, :depth].T]


TEXTS = st.one_of(
    st.lists(st.integers(0, 1), max_size=80),
    st.lists(st.integers(0, 3), max_size=80),
    st.builds(
        lambda pattern, changes: [
            changes.get(at, token) for at, token in enumerate((pattern * 40)[:80])
        ],
        st.lists(st.integers(0, 2), min_size=1, max_size=9),
        st.dictionaries(st.integers(0, 79), st.integers(0, 2), max_size=4),
    ),
)


@settings(deadline=None, max_examples=300)
@given(text=TEXTS, longest=st.integers(1, 12), runs=st.lists(st.integers(1, 9)))
def test_every_place_is_that_of_brute_force_as_the_text_grows(
    text: list[int], longest: int, runs: list[int]
) -> None:
    index = NgramIndex(longest)
    end = 0
    for run in [*runs, len(text)]:
        end = min(end + run, len(text))
        index.extend(np.array(text[:end], np.int32))
        assert found(index) == brute_force(text[:end], longest)


@pytest.mark.parametrize("alphabet", [1, 2, 40])
def test_a_text_that_outgrows_the_first_room_many_times_is_indexed_all_the_same(
    alphabet: int,
) -> None:
    text = np.random.default_rng(alphabet).integers(0, alphabet, 3_000).tolist()
    text += text[500:900]
    index = NgramIndex.of(np.array(text, np.int32), 9)
    assert found(index) == brute_force(text, 9)


def test_tokens_that_differ_only_beyond_16_bits_or_in_sign_are_told_apart() -> None:
    text = [1, 65_537, 1 << 30, -1, -65_537, 0, 2**31 - 1, -(2**31), 1]
    assert found(NgramIndex.of(np.array(text, np.int32), 3)) == [(0, 0)]


def test_a_text_that_repeats_nothing_takes_one_node_a_token() -> None:
    index = NgramIndex.of(np.arange(1_000, dtype=np.int32), 50)
    assert index.state[1] == 1 + 1_000


def test_no_step_visits_more_than_the_longest_n_gram() -> None:
    index = NgramIndex.of(np.zeros(5_000, np.int32), 6)
    assert index.state[1] == 1 + 6
