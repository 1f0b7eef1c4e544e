import pytest
from hypothesis import given
from hypothesis import strategies as st

from outrider.bench.plan import MOST_DRAFTED, MOST_LOOKED_UP, draft_lengths, ngram_arms
from outrider.errors import InvalidSetting
from outrider.records.arm import BASELINE


@given(st.lists(st.integers(1, MOST_DRAFTED), min_size=1, unique=True))
def test_draft_lengths_keep_their_order(lengths: list[int]) -> None:
    assert draft_lengths(",".join(map(str, lengths))) == tuple(lengths)


@given(st.lists(st.integers(-3, MOST_DRAFTED + 3)))
def test_lengths_out_of_range_or_repeated_are_refused(lengths: list[int]) -> None:
    good = 0 < len(lengths) == len(set(lengths) & set(range(1, MOST_DRAFTED + 1)))
    text = ",".join(map(str, lengths))
    if good:
        assert draft_lengths(text) == tuple(lengths)
    else:
        with pytest.raises(InvalidSetting):
            draft_lengths(text)


@pytest.mark.parametrize(
    "text", ["", " ", "0", "-1", "1,0", "x", "two", "1,,2", "1,2,", "1.5", "1;2", "2,2", "1, 1"]
)
def test_what_is_no_list_of_lengths_is_shown_and_refused(text: str) -> None:
    with pytest.raises(InvalidSetting, match="different whole numbers from 1 to") as caught:
        draft_lengths(text)
    assert caught.value.seen == f"--k {text!r}"


def test_no_speculation_comes_first_and_each_length_has_an_arm() -> None:
    arms = ngram_arms((4, 1), lookup_min=2, lookup_max=5, tie="earliest")
    assert arms[0] == BASELINE
    assert [(arm.name, arm.num_speculative_tokens) for arm in arms[1:]] == [
        ("ngram K=4", 4),
        ("ngram K=1", 1),
    ]
    for arm in arms[1:]:
        assert (arm.method, arm.prompt_lookup_min, arm.prompt_lookup_max) == ("ngram", 2, 5)
        assert arm.ngram_tie == "earliest"
        assert arm.ngram_fill is False


def test_every_arm_that_drafts_has_its_drafts_filled_where_asked() -> None:
    baseline, arm = ngram_arms((4,), lookup_min=2, lookup_max=5, tie="recent", fill=True)
    assert baseline.ngram_fill is None
    assert arm.ngram_fill is True


@pytest.mark.parametrize(
    ("shortest", "longest"), [(0, 5), (-1, 5), (3, 2), (1, 0), (1, MOST_LOOKED_UP + 1)]
)
def test_n_gram_lengths_out_of_order_are_refused(shortest: int, longest: int) -> None:
    with pytest.raises(InvalidSetting, match="1 <= min <= max") as caught:
        ngram_arms((1,), lookup_min=shortest, lookup_max=longest, tie="recent")
    assert str(shortest) in caught.value.seen
    assert str(longest) in caught.value.seen


def test_one_n_gram_length_is_enough() -> None:
    *_, arm = ngram_arms((1,), lookup_min=3, lookup_max=3, tie="recent")
    assert (arm.prompt_lookup_min, arm.prompt_lookup_max) == (3, 3)


@pytest.mark.parametrize("tie", ["", "latest", "Recent"])
def test_an_unknown_tie_rule_is_refused(tie: str) -> None:
    with pytest.raises(InvalidSetting, match="one of recent, earliest"):
        ngram_arms((1,), lookup_min=2, lookup_max=5, tie=tie)
