"""From the fields of a request to the one structure that it asks for."""

import json
from collections.abc import Callable

from outrider.engine.constraints.compiler import ConstraintCompiler, Grammar
from outrider.engine.constraints.spec import ConstraintKind, ConstraintSpec
from outrider.errors import OutriderError
from outrider.server.api.errors import bad_request
from outrider.server.api.requests.fields import GenerationFields
from outrider.server.api.requests.structured_output import (
    ResponseFormat,
    StructuredOutput,
    StructuredOutputs,
)

Constraints = Callable[[], ConstraintCompiler]
"""Gives the compiler of the model's constraints; UnsupportedModel where it can have none."""

_NOT_DONE = (
    "structural_tag",
    "whitespace_pattern",
    "disable_any_whitespace",
    "disable_additional_properties",
)
"""What else vLLM's structured_outputs may have that would change the answer."""


def structured_output(request: GenerationFields) -> StructuredOutput | None:
    """Return what the answer has to conform to, None for free text; ApiError for two at once."""
    asked = [
        *_of_format(request.response_format),
        *_of_outputs(request.structured_outputs),
    ]
    if len(asked) > 1:
        names = ", ".join(each.field for each in asked)
        raise bad_request(f"{names} at once; ask for one of them", asked[1].field)
    return asked[0] if asked else None


def compiled_structure(request: GenerationFields, constraints: Constraints) -> Grammar | None:
    """Return the grammar of what the answer has to be; takes long for a large one.

    Raises ApiError for one that cannot be enforced, or by this model at all.
    """
    asked = structured_output(request)
    if asked is None:
        return None
    try:
        return constraints().compile(asked.spec)
    except OutriderError as error:
        raise bad_request(f"{asked.field}: {error}", asked.field) from error


def _asked(kind: ConstraintKind, value: object, field: str) -> StructuredOutput:
    text = value if isinstance(value, str | tuple) else json.dumps(value)
    try:
        return StructuredOutput(ConstraintSpec(kind, text), field)
    except OutriderError as error:
        raise bad_request(f"{field}: {error}", field) from error


def _of_format(asked: ResponseFormat | None) -> list[StructuredOutput]:
    if asked is None or asked.type == "text":
        return []
    if asked.type == "json_object":
        return [_asked("json_object", "", "response_format")]
    if asked.json_schema is None or asked.json_schema.json_schema is None:
        raise bad_request(
            'response_format of type "json_schema" needs json_schema.schema', "response_format"
        )
    return [_asked("json", asked.json_schema.json_schema, "response_format")]


def _of_outputs(asked: StructuredOutputs | None) -> list[StructuredOutput]:
    if asked is None:
        return []
    given = asked.model_extra or {}
    for name in _NOT_DONE:
        if given.get(name):
            field = f"structured_outputs.{name}"
            raise bad_request(f"{field} is not supported; write a schema or a grammar", field)
    found = []
    if asked.json_ is not None:
        found.append(_asked("json", asked.json_, "structured_outputs.json"))
    if asked.json_object:
        found.append(_asked("json_object", "", "structured_outputs.json_object"))
    if asked.regex is not None:
        found.append(_asked("regex", asked.regex, "structured_outputs.regex"))
    if asked.choice is not None:
        found.append(_asked("choice", tuple(asked.choice), "structured_outputs.choice"))
    if asked.grammar is not None:
        found.append(_asked("grammar", asked.grammar, "structured_outputs.grammar"))
    if not found:
        raise bad_request(
            "structured_outputs asks for nothing; give it one of json, json_object, regex, choice"
            " and grammar",
            "structured_outputs",
        )
    return found
