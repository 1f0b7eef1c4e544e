import pytest
from tests.server.speculation.settings import read

from outrider.errors import InvalidSetting
from outrider.server.speculation.draft_length import draft_length


@pytest.mark.parametrize("k", [1, 5, 128])
def test_what_the_user_gave_counts(k: int) -> None:
    config = read(num_speculative_tokens=k, suffix_decoding_max_tree_depth=9)
    assert draft_length("suffix", config) == k


def test_suffix_drafts_as_deep_as_its_tree_by_default() -> None:
    assert draft_length("suffix", read()) == 24
    assert draft_length("suffix", read(suffix_decoding_max_tree_depth=9)) == 9


def test_a_checkpoint_tells_how_much_it_was_trained_to_predict() -> None:
    assert draft_length("mtp", read(), n_predict=3) == 3
    assert draft_length("dspark", read(), block_size=7) == 7


@pytest.mark.parametrize("method", ["ngram", "draft_model", "eagle3", "mtp", "dspark", "dflash"])
def test_without_any_of_these_k_must_be_given(method: str) -> None:
    with pytest.raises(InvalidSetting, match="num_speculative_tokens was not provided"):
        draft_length(method, read())


def test_only_dspark_takes_k_from_a_block_size() -> None:
    with pytest.raises(InvalidSetting, match="was not provided"):
        draft_length("dflash", read(), block_size=7)


@pytest.mark.parametrize(("k", "fits"), [(1, True), (3, True), (4, False), (5, False), (6, True)])
def test_k_above_the_trained_depth_is_a_multiple_of_it(*, k: int, fits: bool) -> None:
    config = read(num_speculative_tokens=k)
    if fits:
        assert draft_length("mtp", config, n_predict=3) == k
    else:
        with pytest.raises(
            InvalidSetting, match=f"num_speculative_tokens:{k} must be divisible.*use 3 or 6"
        ):
            draft_length("mtp", config, n_predict=3)


@pytest.mark.parametrize(
    ("method", "key"),
    [("ngram", "num_speculative_tokens"), ("suffix", "suffix_decoding_max_tree_depth")],
)
def test_no_draft_is_longer_than_128(method: str, key: str) -> None:
    assert draft_length(method, read(**{key: 128})) == 128
    with pytest.raises(InvalidSetting, match="num_speculative_tokens 129; expected at most 128"):
        draft_length(method, read(**{key: 129}))
