import json

import pytest

from outrider.engine.constraints.limits import ConstraintLimits
from outrider.engine.constraints.spec import ConstraintSpec
from outrider.errors import InvalidSetting


def refused(limits: ConstraintLimits, spec: ConstraintSpec) -> str | None:
    try:
        limits.check(spec)
    except InvalidSetting as error:
        return str(error)
    return None


def test_size_is_counted_in_bytes_of_all_texts_together() -> None:
    limits = ConstraintLimits(max_bytes=6)
    assert refused(limits, ConstraintSpec("choice", ("éé", "ab"))) is None
    told = refused(limits, ConstraintSpec("choice", ("éé", "abc")))
    assert told is not None
    assert told.startswith("a choice constraint of 7 bytes; expected at most 6")


def nested(depth: int) -> str:
    return '{"items":' * (depth - 1) + "{}" + "}" * (depth - 1)


@pytest.mark.parametrize("depth", [1, 2, 64, 65, 5_000])
def test_depth_is_that_of_the_schema(depth: int) -> None:
    told = refused(ConstraintLimits(max_depth=64), ConstraintSpec("json", nested(depth)))
    if depth <= 64:
        assert told is None
    else:
        assert told is not None
        assert told.startswith(f"a JSON schema nested {depth} deep; expected at most 64")


@pytest.mark.parametrize("inside", ["[[[[", "]]]]{{", '\\"[[[', "a\\\\", "\\u005b["])
def test_brackets_in_strings_do_not_nest(inside: str) -> None:
    limits = ConstraintLimits(max_depth=2)
    text = f'{{"enum": ["{inside}", 1]}}'
    assert json.loads(text)["enum"][1] == 1
    assert refused(limits, ConstraintSpec("json", text)) is None
    assert refused(ConstraintLimits(max_depth=1), ConstraintSpec("json", text)) is not None


def test_text_that_utf8_cannot_express_is_refused() -> None:
    told = refused(ConstraintLimits(), ConstraintSpec("regex", "a\ud800"))
    assert told is not None
    assert "half a surrogate pair" in told
