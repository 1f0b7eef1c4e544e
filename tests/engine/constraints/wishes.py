"""Constraints of every kind, each with a judge that knows nothing of grammars."""

import json
import re
from collections.abc import Callable
from typing import Any

import jsonschema_rs

from outrider.engine.constraints.spec import ConstraintSpec

Judge = Callable[[str], bool]


def to_schema(schema: Any) -> tuple[ConstraintSpec, Judge]:
    return (
        ConstraintSpec("json", json.dumps(schema)),
        lambda text: jsonschema_rs.is_valid(schema, json.loads(text)),
    )


def to_regex(regex: str) -> tuple[ConstraintSpec, Judge]:
    return ConstraintSpec("regex", regex), lambda text: re.fullmatch(regex, text) is not None


def nests(text: str) -> bool:
    depth = text.count("(")
    return depth > 0 and text == "(" * depth + "x" + ")" * depth


def doubles(text: str) -> bool:
    half = len(text) // 2
    return text == "a" * half + "b" * half != ""


WISHES: dict[str, tuple[ConstraintSpec, Judge]] = {
    "an object": to_schema(
        {
            "type": "object",
            "properties": {
                "a": {"type": "integer", "minimum": 0, "maximum": 250},
                "b": {"enum": ["x", "y", None]},
                "c": {"type": "array", "items": {"type": "boolean"}, "maxItems": 3},
            },
            "required": ["a", "b"],
            "additionalProperties": False,
        }
    ),
    "nested": to_schema(
        {
            "$defs": {
                "pair": {
                    "type": "object",
                    "properties": {
                        "n": {"type": "string", "maxLength": 4},
                        "o": {"anyOf": [{"$ref": "#/$defs/pair"}, {"type": "null"}]},
                    },
                    "required": ["n", "o"],
                    "additionalProperties": False,
                }
            },
            "$ref": "#/$defs/pair",
        }
    ),
    "a list of dates": to_schema(
        {
            "type": "array",
            "items": {"type": "string", "pattern": "^[0-9]{2}-[0-9]{2}$"},
            "minItems": 2,
            "maxItems": 4,
        }
    ),
    "any object": (
        ConstraintSpec("json_object"),
        lambda text: isinstance(json.loads(text), dict),
    ),
    "letters": to_regex("(ab|ba){2,9}c?"),
    "a number": to_regex(r"-?[1-9][0-9]{0,7}(\.[0-9]{2})?"),
    "a choice": (
        ConstraintSpec("choice", ("red", "redred", 'a"b\n', "true", "trues", "é")),
        lambda text: text in {"red", "redred", 'a"b\n', "true", "trues", "é"},
    ),
    "lark": (ConstraintSpec("grammar", 'start: "(" start ")" | "(x)"'), nests),
    "gbnf": (ConstraintSpec("grammar", 'root ::= "a" root "b" | "ab"'), doubles),
}
"""By name; the last two are no regular languages."""
