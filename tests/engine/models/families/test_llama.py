import pytest
from tests.engine.models.families.minimal import read

from outrider.errors import UnsupportedModel


def test_a_llama_has_no_window_even_where_its_config_mentions_one() -> None:
    assert read("llama", sliding_window=64).windows == (0, 0, 0)


def test_every_layer_of_a_mistral_slides() -> None:
    assert read("mistral", sliding_window=64).windows == (64, 64, 64)
    assert read("mistral").windows == (4096, 4096, 4096)
    assert read("mistral", sliding_window=None) == read("llama")


@pytest.mark.parametrize("window", ["wide", -1])
def test_a_window_is_a_number_of_tokens(window: object) -> None:
    with pytest.raises(UnsupportedModel, match=f"sliding_window is {window!r}"):
        read("mistral", sliding_window=window)
