import pytest

from outrider.errors import InvalidSetting
from outrider.replay.lookup.grid import Grid, chosen, numbers, whole_numbers
from outrider.replay.lookup.registry import lookup_settings


@pytest.mark.parametrize(
    ("text", "found"),
    [("4", (4,)), ("1:3", (1, 2, 3)), ("8, 1:2,2", (1, 2, 8)), ("255", (255,))],
)
def test_lists_and_ranges_become_each_number_once(text: str, found: tuple[int, ...]) -> None:
    assert whole_numbers("--k", text) == found


@pytest.mark.parametrize("text", ["", "0", "256", "3:1", "1:", "a", "-1", "1.5", "1,,2", "١"])
def test_what_is_no_list_of_them_is_named(text: str) -> None:
    with pytest.raises(InvalidSetting, match=r"--k .*expected whole numbers from 1 to 255"):
        whole_numbers("--k", text)


def test_too_many_values_are_refused() -> None:
    with pytest.raises(InvalidSetting, match="100 values; expected at most 64"):
        whole_numbers("--k", "1:100")


@pytest.mark.parametrize("text", ["", "x", "2", "-0.1", "nan"])
def test_numbers_stay_within_their_range(text: str) -> None:
    with pytest.raises(InvalidSetting, match=r"numbers from 0 to 1"):
        numbers("--suffix-decoding-min-token-prob", text, most=1)
    assert numbers("--suffix-decoding-min-token-prob", "0, 0.5,0.5", most=1) == (0, 0.5)


def test_a_word_that_is_none_of_the_valid_ones_names_them() -> None:
    with pytest.raises(InvalidSetting, match="'latest'; expected one of recent, earliest"):
        chosen("--ngram-tie", "recent,latest", ("recent", "earliest"))


def test_an_unknown_drafter_names_the_known_ones() -> None:
    with pytest.raises(InvalidSetting, match="'eagle'; expected one of ngram, suffix"):
        lookup_settings(["eagle"], Grid())


def test_a_grid_is_every_combination_with_lengths_in_order() -> None:
    grid = Grid(
        prompt_lookup_min=(1, 4), prompt_lookup_max=(3, 5), ngram_tie=("recent", "earliest")
    )
    assert [each.name for each in lookup_settings(["ngram"], grid)] == [
        f"ngram {lengths} {tie}"
        for lengths in ("1–3", "1–5", "4–5")
        for tie in ("recent", "earliest")
    ]


def test_filled_drafts_are_compared_with_those_that_are_not() -> None:
    names = [each.name for each in lookup_settings(["ngram"], Grid(ngram_fill=True))]
    assert names == ["ngram 2–5 recent", "ngram 2–5 recent filled"]


def test_lengths_that_are_never_in_order_are_refused() -> None:
    with pytest.raises(InvalidSetting, match="--prompt-lookup-min 4 above --prompt-lookup-max 3"):
        lookup_settings(["ngram"], Grid(prompt_lookup_min=(4,), prompt_lookup_max=(3,)))


def test_settings_that_differ_in_the_last_digit_have_names_of_their_own() -> None:
    near = (0.1, 0.1000000001, 0.1000000002)
    names = [each.name for each in lookup_settings(["suffix"], Grid(min_token_prob=near))]
    assert names == ["suffix", "suffix chance 0.1000000001", "suffix chance 0.1000000002"]


def test_a_negative_zero_is_zero() -> None:
    assert str(numbers("--suffix-decoding-max-spec-factor", "-0.0,0", most=1)) == "(0.0,)"


def test_a_warm_cache_is_compared_with_none() -> None:
    names = [each.name for each in lookup_settings(["suffix"], Grid(warm_cache=True))]
    assert names == ["suffix", "suffix own text only"]


def test_more_settings_than_can_be_compared_are_refused() -> None:
    grid = Grid(prompt_lookup_min=tuple(range(1, 11)), prompt_lookup_max=tuple(range(11, 21)))
    with pytest.raises(InvalidSetting, match="100 settings; expected at most 64"):
        lookup_settings(["ngram"], grid)
