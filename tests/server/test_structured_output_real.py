"""SmolLM2 over HTTP: two hundred answers held to a schema, with every drafter that there is."""

import json
from contextlib import AbstractContextManager

import httpx2
import jsonschema_rs
import pytest
from tests.server.asking import chat
from tests.server.models import served_model

from outrider.bench.target import usable_cores
from outrider.engine.models.store import cache_directory
from outrider.engine.scheduling.limits import Limits
from outrider.server.service.building import EngineSettings
from outrider.server.speculation.methods.registry import METHODS

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]

MODEL = "smollm2-135m"
SCHEMA = {
    "type": "object",
    "properties": {
        "city": {"type": "string", "maxLength": 24},
        "country": {"enum": ["France", "Italy", "Spain", "Portugal"]},
        "inhabitants": {"type": "integer", "minimum": 1000, "maximum": 20_000_000},
        "rivers": {"type": "array", "items": {"type": "string", "maxLength": 12}, "maxItems": 2},
    },
    "required": ["city", "country", "inhabitants", "rivers"],
    "additionalProperties": False,
}
EXAMPLE = {"city": "Lyon", "country": "France", "inhabitants": 520774, "rivers": ["Rhône", "Saône"]}
QUESTION = (
    "Name a city as JSON, with the same fields as in this answer of yours: "
    f"{json.dumps(EXAMPLE, ensure_ascii=False)} Do not repeat it. Number "
)
MOST_TOKENS = 120
CONFIGS: dict[str, dict[str, object]] = {
    "ngram": {"num_speculative_tokens": 4, "prompt_lookup_min": 1, "prompt_lookup_max": 4},
    "suffix": {},
    "draft_model": {
        "model": MODEL,
        "num_speculative_tokens": 3,
        "draft_sample_method": "probabilistic",
    },
}


def served(method: str) -> AbstractContextManager[httpx2.Client]:
    engine = EngineSettings(
        threads=usable_cores(),
        max_model_len=1_024,
        limits=Limits(max_num_seqs=16, max_num_batched_tokens=512),
    )
    speculation = json.dumps({"method": method, **CONFIGS[method]})
    return served_model(MODEL, MODEL, cache_directory(), engine, speculation)


def test_every_method_is_tried() -> None:
    assert CONFIGS.keys() == METHODS.keys()


@pytest.mark.parametrize("method", CONFIGS)
def test_two_hundred_answers_hold_to_their_schema(method: str) -> None:
    check = jsonschema_rs.validator_for(SCHEMA).validate
    asked = {"type": "json_schema", "json_schema": {"name": "city", "schema": SCHEMA}}
    answers = drafted = ended = 0
    with served(method) as client:
        for seed in range(25):
            body = chat(
                client,
                model=MODEL,
                messages=[{"role": "user", "content": f"{QUESTION}{seed}."}],
                max_tokens=MOST_TOKENS,
                temperature=0.8,
                seed=seed,
                n=8,
                response_format=asked,
            )
            for choice in body["choices"]:
                answers += 1
                drafted += choice["metrics"]["speculative_decoding"]["num_draft_tokens"]
                if choice["finish_reason"] == "stop":
                    ended += 1
                    check(json.loads(choice["message"]["content"]))
    assert answers == 200
    assert ended > 190  # a few may go on until no more tokens are left to them
    assert drafted > 1_000
