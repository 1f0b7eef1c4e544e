from typing import Any

import pytest

from outrider.engine.constraints.spec import ConstraintSpec
from outrider.errors import InvalidSetting


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        ("json", "{}"),
        ("json_object", ""),
        ("regex", "a"),
        ("choice", ("a", "b")),
        ("grammar", 'start: "a"'),
    ],
)
def test_a_spec_is_a_kind_and_its_text(kind: Any, value: Any) -> None:
    spec = ConstraintSpec(kind, value)
    assert (spec.kind, spec.value) == (kind, value)
    assert hash(spec) == hash(ConstraintSpec(kind, value))


@pytest.mark.parametrize(
    ("kind", "value", "told"),
    [
        ("yaml", "a", "use one of json, json_object, regex, choice, grammar"),
        ("json", "", "expected a text that is not empty"),
        ("json", {"type": "object"}, "expected a text"),
        ("regex", ("a",), "expected a text"),
        ("grammar", 3, "expected a text"),
        ("json_object", "{}", "expected no text"),
        ("choice", (), "a list of strings, none of them empty"),
        ("choice", ("a", ""), "none of them empty"),
        ("choice", "ab", "a list of strings"),
        ("choice", ("a", 3), "a list of strings"),
        ("choice", ["a"], "a list of strings"),
    ],
)
def test_what_is_no_spec_is_refused_in_one_line(kind: Any, value: Any, told: str) -> None:
    with pytest.raises(InvalidSetting) as caught:
        ConstraintSpec(kind, value)
    assert told in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_long_value_is_not_repeated_whole() -> None:
    with pytest.raises(InvalidSetting) as caught:
        ConstraintSpec("choice", ("",) * 10_000)
    assert len(str(caught.value)) < 300
