"""A value that does not validate, told in one line."""

import json
from collections.abc import Mapping

from pydantic import ValidationError

from outrider.errors import InvalidSetting

_MOST_SHOWN = 60


def shown(value: object) -> str:
    """Return `value` as JSON on one line, cut where it is long."""
    text = json.dumps(value, default=str)
    return text if len(text) <= _MOST_SHOWN else f"{text[: _MOST_SHOWN - 1]}…"


def explained(error: ValidationError, given_as: Mapping[str, str]) -> InvalidSetting:
    """Return the first failure of `error`; `given_as` has the flags that stood for keys."""
    first = error.errors(include_url=False)[0]
    key, *place = first["loc"]
    where = given_as.get(str(key), str(key)) + "".join(f"[{each}]" for each in place)
    template = _EXPECTED.get(first["type"])
    expected = (
        first["msg"].removeprefix("Input should be ")
        if template is None
        else template.format_map(first.get("ctx", {}))
    )
    return InvalidSetting(f"{where} {shown(first['input'])}", expected, "correct that value")


_EXPECTED = {
    "bool_type": "true or false",
    "dict_type": "an object",
    "finite_number": "a finite number",
    "float_type": "a number",
    "greater_than_equal": "{ge} or more",
    "int_type": "a whole number",
    "less_than_equal": "{le} or less",
    "literal_error": "{expected}",
    "string_too_short": "text that is not empty",
    "string_unicode": "text",
    "string_type": "text",
    "tuple_type": "a list",
}
