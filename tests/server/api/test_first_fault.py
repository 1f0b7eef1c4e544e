"""Bodies with many faults cost no more than those with one."""

from typing import Any

import pytest
from pydantic import BaseModel, ValidationError

from outrider.server.api.requests.chat import ChatRequest
from outrider.server.api.requests.completion import CompletionRequest
from outrider.server.api.requests.tokens import DetokenizeRequest, TokenizeRequest

MANY = 500
FEW = 10
"""A field of several types has a fault for each of them."""
NUMBERED = [f"a{place}" for place in range(MANY)]
WRONG: dict[str, Any] = {
    "nulls": [None] * MANY,
    "numbers": [-1] * MANY,
    "lists": [[None]] * MANY,
    "a list of nulls": [[None] * MANY],
    "a list of numbers": [[-1] * MANY],
    "parts": [{"role": "user", "content": [None] * MANY}],
    "names": dict.fromkeys(NUMBERED),
    "choices": {"type": "text", "choice": [None] * MANY},
}


@pytest.mark.parametrize("wrong", WRONG)
@pytest.mark.parametrize(
    ("request_type", "field"),
    [
        (each, field)
        for each in (ChatRequest, CompletionRequest, TokenizeRequest, DetokenizeRequest)
        for field in each.model_fields
    ],
)
def test_a_body_is_refused_at_its_first_fault(
    request_type: type[BaseModel], field: str, wrong: str
) -> None:
    required = {"messages": [{"role": "user"}], "prompt": "x", "tokens": [1]}
    fields = {name: required[name] for name in required.keys() & request_type.model_fields.keys()}
    faults = 0
    try:
        request_type.model_validate(fields | {field: WRONG[wrong]})
    except ValidationError as error:
        faults = error.error_count()
    assert faults < FEW


def test_biases_are_read_as_before() -> None:
    fields = {"prompt": "x", "logit_bias": {"1": 1, "20": -2.5}}
    assert CompletionRequest.model_validate(fields).logit_bias == {1: 1.0, 20: -2.5}
