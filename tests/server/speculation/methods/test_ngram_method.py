import pytest
from tests.engine.loops import CountingModel
from tests.server.speculation.settings import TARGET, ngram, read

from outrider.engine.drafting.ngram import NgramDrafter
from outrider.errors import InvalidSetting
from outrider.server.speculation.methods.ngram import NgramMethod


@pytest.mark.parametrize(
    ("shortest", "longest", "resolved"),
    [
        (None, None, (5, 5)),
        (2, None, (2, 2)),
        (None, 7, (7, 7)),
        (2, 7, (2, 7)),
        (7, 7, (7, 7)),
    ],
)
def test_an_ngram_length_that_is_not_set_is_5_or_the_other_one(
    shortest: int | None, longest: int | None, resolved: tuple[int, int]
) -> None:
    method = ngram(prompt_lookup_min=shortest, prompt_lookup_max=longest).drafting
    assert method == NgramMethod(4, *resolved)


def test_the_least_length_is_not_above_the_greatest() -> None:
    with pytest.raises(InvalidSetting, match="prompt_lookup_min=7 must be <= prompt_lookup_max=2"):
        ngram(prompt_lookup_min=7, prompt_lookup_max=2)


def test_k_must_be_given() -> None:
    with pytest.raises(InvalidSetting, match="was not provided with method ngram"):
        NgramMethod.resolve(read(method="ngram"), TARGET)


def test_a_checkpoint_is_refused() -> None:
    with pytest.raises(InvalidSetting, match="model 'org/draft' with method ngram"):
        ngram(model="org/draft")


def test_it_builds_the_drafter_that_takes_the_most_recent_place() -> None:
    built = NgramMethod(3, 2, 4).build(CountingModel())
    assert built == NgramDrafter(3, 2, 4, "recent")
