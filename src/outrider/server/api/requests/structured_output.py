"""What an answer has to conform to."""

from dataclasses import dataclass
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from outrider.engine.constraints.spec import ConstraintSpec
from outrider.server.api.requests.at_first_fault import Several


class JsonSchema(BaseModel):
    """A schema under a name, as OpenAI's API has it."""

    model_config = ConfigDict(extra="ignore", frozen=True)

    name: str | None = None
    json_schema: dict[str, Any] | bool | None = Field(default=None, alias="schema")
    strict: bool | None = None


class ResponseFormat(BaseModel):
    """OpenAI's way to ask for structure."""

    model_config = ConfigDict(extra="ignore", frozen=True)

    type: Literal["text", "json_object", "json_schema"]
    json_schema: JsonSchema | None = None


class StructuredOutputs(BaseModel):
    """vLLM's way to ask for structure: one of these. Other fields are in `model_extra`."""

    model_config = ConfigDict(extra="allow", frozen=True, populate_by_name=True)

    json_: dict[str, Any] | str | None = Field(default=None, alias="json")
    json_object: bool | None = None
    regex: str | None = None
    choice: Several[str] | None = None
    grammar: str | None = None


@dataclass(frozen=True, slots=True)
class StructuredOutput:
    """What an answer has to be, and what the client called it."""

    spec: ConstraintSpec
    field: str
