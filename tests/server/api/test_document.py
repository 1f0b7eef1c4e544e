"""Schemathesis over the document that the server shows of itself."""

import pytest
import schemathesis
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from schemathesis.checks import not_a_server_error
from schemathesis.core.result import Ok
from schemathesis.specs.openapi.checks import content_type_conformance, status_code_conformance
from tests.server.serving import AlphabetModel, api_over, running

from outrider.engine.tokenizer import Tokenizer
from outrider.server.api.app import create_app

CHECKS = [not_a_server_error, status_code_conformance, content_type_conformance]
MODES = list(schemathesis.GenerationMode)


@pytest.mark.parametrize("mode", MODES, ids=lambda mode: mode.value)
def test_requests_made_from_the_document_are_answered_as_it_says(
    tokenizer: Tokenizer, mode: schemathesis.GenerationMode
) -> None:
    with running(api_over(AlphabetModel(max_length=64), tokenizer)) as server:
        schema = schemathesis.openapi.from_dict(create_app(server.api).openapi())
        answered = set()

        @settings(
            max_examples=120,
            deadline=None,
            derandomize=True,
            suppress_health_check=list(HealthCheck),
        )
        @given(st.data())
        def every(data: st.DataObject) -> None:
            found = schema.get_all_operations()
            operations = [each.ok() for each in found if isinstance(each, Ok)]
            operation = data.draw(st.sampled_from(operations))
            case = data.draw(operation.as_strategy(generation_mode=mode))
            response = case.call_and_validate(base_url=server.url, checks=CHECKS, timeout=60)
            answered.add((operation.label, response.status_code))

        every()
        assert {label for label, _ in answered} >= {
            "POST /v1/chat/completions",
            "POST /v1/completions",
        }
