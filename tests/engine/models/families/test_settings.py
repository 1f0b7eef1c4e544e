from collections.abc import Callable
from typing import Any

import pytest

from outrider.engine.models.families.settings import Settings
from outrider.errors import UnsupportedModel


def refusal(act: Callable[[], object]) -> UnsupportedModel:
    with pytest.raises(UnsupportedModel) as refused:
        act()
    assert "\n" not in str(refused.value)
    return refused.value


@pytest.mark.parametrize("empty", [{}, {"n": None}, {"n": 0}])
def test_an_empty_size_counts_as_left_out(empty: dict[str, Any]) -> None:
    assert Settings(empty).size("n", 5) == 5


@pytest.mark.parametrize("value", ["many", -1, 2.5, True, [3]])
def test_a_size_is_a_whole_number_above_0(value: object) -> None:
    error = refusal(lambda: Settings({"n": value}).size("n", 5))
    assert (error.seen, error.expected) == (f"the model's n is {value!r}", "a whole number above 0")


@pytest.mark.parametrize("value", ["1e-5", 0, -0.5, True, float("nan")])
def test_a_number_is_above_0(value: object) -> None:
    error = refusal(lambda: Settings({"x": value}).number("x", 1.0))
    assert (error.seen, error.expected) == (f"the model's x is {value!r}", "a number above 0")


@pytest.mark.parametrize("read", [Settings({}).size, Settings({}).number])
def test_what_has_no_usual_value_may_not_be_missing(read: Callable[[str], object]) -> None:
    assert refusal(lambda: read("x")).seen == "the model's x is missing"


@pytest.mark.parametrize(
    ("stated", "ids"), [(None, ()), (2, (2,)), (0, (0,)), ([5, 7], (5, 7)), ([], ())]
)
def test_there_may_be_none_one_or_several_ids(stated: object, ids: tuple[int, ...]) -> None:
    assert Settings({"end": stated}).ids("end") == ids


@pytest.mark.parametrize("stated", ["</s>", -1, [1, None], True, {}])
def test_other_ids_are_refused(stated: object) -> None:
    assert refusal(lambda: Settings({"end": stated}).ids("end")).expected == "token ids"


def test_an_error_inside_a_part_names_the_part() -> None:
    part = Settings({"rope": {"factor": "x"}}).part("rope")
    assert refusal(lambda: part.number("factor")).seen == "the model's rope's factor is 'x'"


def test_a_part_that_is_no_object_is_refused() -> None:
    assert refusal(lambda: Settings({"rope": 5}).part("rope")).expected == "an object"
    assert Settings({"rope": None}).part("rope").stated == {}
