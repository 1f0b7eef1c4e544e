"""From the fields of a request to the one structure that it asks for."""

from outrider.server.api.errors import ApiError, bad_request
from outrider.server.api.requests.fields import GenerationFields
from outrider.server.api.requests.structured_output import (
    ResponseFormat,
    StructuredOutput,
    StructuredOutputs,
)


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


def refuse_structure(structure: StructuredOutput | None) -> None:
    """Raise ApiError for any structure: the engine does not enforce one yet."""
    if structure is not None:
        raise not_yet(structure.field)


def not_yet(field: str) -> ApiError:
    """Return the refusal of a field that will be served in time."""
    return bad_request(f"{field} is not supported yet; leave it out", field)


def _of_format(asked: ResponseFormat | None) -> list[StructuredOutput]:
    if asked is None or asked.type == "text":
        return []
    if asked.type == "json_object":
        return [StructuredOutput("json_object", None, "response_format")]
    if asked.json_schema is None or asked.json_schema.json_schema is None:
        raise bad_request(
            'response_format of type "json_schema" needs json_schema.schema', "response_format"
        )
    return [StructuredOutput("json", asked.json_schema.json_schema, "response_format")]


def _of_outputs(asked: StructuredOutputs | None) -> list[StructuredOutput]:
    if asked is None:
        return []
    found = []
    if asked.json_ is not None:
        found.append(StructuredOutput("json", asked.json_, "structured_outputs.json"))
    if asked.json_object:
        found.append(StructuredOutput("json_object", None, "structured_outputs.json_object"))
    if asked.regex is not None:
        found.append(StructuredOutput("regex", asked.regex, "structured_outputs.regex"))
    if asked.choice is not None:
        found.append(StructuredOutput("choice", tuple(asked.choice), "structured_outputs.choice"))
    if asked.grammar is not None:
        found.append(StructuredOutput("grammar", asked.grammar, "structured_outputs.grammar"))
    return found
