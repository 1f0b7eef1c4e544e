"""From a constraint to the Lark grammar that llguidance reads."""

import json
from collections.abc import Callable, Mapping
from types import MappingProxyType

from llguidance import regex_to_lark
from llguidance.gbnf_to_lark import any_to_lark

from outrider.engine.constraints.spec import ConstraintKind, ConstraintSpec

WHITESPACE = r"[\x20\x0A\x0D\x09]{1,32}"
"""What may stand between the parts of a JSON text. Small models tend to go on with blanks for ever;
a schema may ask for another pattern under `x-guidance`."""

_EVERY_SPELLING = '\n%llguidance {"no_forcing": true}\n'
"""Where only one text can follow, llguidance would else allow only one way to cut it into tokens,
and the output would not follow the target's distribution over all of them."""


def grammar_text(spec: ConstraintSpec) -> str:
    """Return `spec` as a grammar; ValueError for text that is plainly none."""
    return _FORMS[spec.kind](*spec.texts) + _EVERY_SPELLING


def _json(text: str) -> str:
    schema = json.loads(text)
    if schema is True:
        schema = {}
    if not isinstance(schema, dict):
        raise ValueError("a schema is an object or true")  # noqa: TRY004  it came as text
    asked = schema.get("x-guidance")
    options = {
        "whitespace_pattern": WHITESPACE,
        **(asked if isinstance(asked, dict) else {}),
        # A schema may not ask to be taken less seriously than it is written.
        "lenient": False,
        "coerce_one_of": False,
    }
    return f"start: %json {json.dumps(schema | {'x-guidance': options})}"


def _choice(*choices: str) -> str:
    quoted = (json.dumps(choice, ensure_ascii=False) for choice in choices)
    return f"start: {' | '.join(quoted)}"


_FORMS: Mapping[ConstraintKind, Callable[..., str]] = MappingProxyType(
    {
        "json": _json,
        "json_object": lambda _: _json('{"type": "object"}'),
        "regex": lambda regex: f"start: /{regex_to_lark(regex, '')}/",
        "choice": _choice,
        "grammar": any_to_lark,
    }
)
