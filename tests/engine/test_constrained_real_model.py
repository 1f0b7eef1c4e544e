"""The real model writes JSON to a schema, with and without speculation."""

import json
from pathlib import Path
from typing import Any

import jsonschema_rs
import pytest
from tests.engine.loops import engine_of, finish

from outrider.bench.target import stop_ids, usable_cores
from outrider.engine.constraints.compiler import ConstraintCompiler
from outrider.engine.constraints.spec import ConstraintSpec
from outrider.engine.constraints.vocabulary import GrammarVocabulary
from outrider.engine.drafting.ngram import NgramDrafter
from outrider.engine.drafting.none import NoDrafter
from outrider.engine.models.fused import FusedDecoder
from outrider.engine.models.packing import PACKINGS
from outrider.engine.models.source import open_weights
from outrider.engine.sampling import Sampling, SamplingParameters
from outrider.engine.sequence import Sequence
from outrider.engine.tokenizer import Tokenizer
from outrider.records.request import FinishReason


def object_of(**properties: Any) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": properties,
        "required": [*properties],
        "additionalProperties": False,
    }


SHORT = {"type": "string", "maxLength": 20}
AGE = {"type": "integer", "minimum": 0, "maximum": 120}
PERSON = object_of(name=SHORT, age=AGE, city=SHORT)
CASES: list[tuple[str, dict[str, Any], SamplingParameters]] = [
    (
        'Repeat as JSON: {"name": "Ada", "age": 36, "city": "London"}',
        PERSON,
        SamplingParameters(),
    ),
    (
        'Repeat as JSON: [{"name": "Ada", "age": 36, "city": "London"}, {"name": "Bob", "age": 4}]',
        {"type": "array", "items": PERSON, "minItems": 2, "maxItems": 3},
        SamplingParameters(),
    ),
    (
        "Invent a person. Answer in JSON.",
        PERSON,
        SamplingParameters(0.8, 7),
    ),
    (
        "Is the sea blue? Answer in JSON with a verdict, a reason and a date.",
        object_of(
            verdict={"enum": ["yes", "no", "perhaps"]},
            reason={"type": "string", "maxLength": 40},
            date={"type": "string", "format": "date"},
        ),
        SamplingParameters(0.6, 8, repetition_penalty=1.1),
    ),
    (
        "Two points on a plane, as JSON.",
        {
            "$defs": {"point": object_of(x={"type": "number"}, y={"type": "number"})},
            **object_of(a={"$ref": "#/$defs/point"}, b={"$ref": "#/$defs/point"}),
        },
        SamplingParameters(),
    ),
]


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_every_answer_fits_its_schema_and_is_the_same_with_ngram_drafts(smollm2: Path) -> None:
    tokenizer = Tokenizer(smollm2)
    model = FusedDecoder(
        open_weights(smollm2),
        packing=PACKINGS["float32"],
        num_blocks=32,
        max_length=512,
        threads=usable_cores(),
    )
    ends = stop_ids(model, tokenizer)
    compiler = ConstraintCompiler(
        GrammarVocabulary.of(tokenizer, size=model.config.vocab_size, end_token_ids=ends)
    )
    accepted = invalidated = 0
    for question, schema, parameters in CASES:
        grammar = compiler.compile(ConstraintSpec("json", json.dumps(schema)))
        outputs = []
        for drafter, k in ((NoDrafter(), 0), (NgramDrafter(6, 1, 4), 6)):
            engine, recorder = engine_of(model, drafter, k)
            sequence = Sequence(
                "r",
                tokenizer.encode_chat([{"role": "user", "content": question}]),
                max_tokens=160,
                sampling=Sampling.seeded(parameters, end_token_ids=ends),
                end_token_ids=ends,
                constraint=grammar.start(),
            )
            engine.add(sequence)
            assert finish(engine) == {"r": FinishReason.STOP}, question
            outputs.append(sequence.output_token_ids.tolist())
            steps = recorder.take(sequence).steps
            accepted += sum(step.accepted for step in steps)
            invalidated += sum(step.invalidated for step in steps)
        plain, speculative = outputs
        assert speculative == plain, question
        text = tokenizer.decode([token for token in plain if token not in ends])
        assert jsonschema_rs.is_valid(schema, json.loads(text)), text
    assert accepted > 0
    assert invalidated > 0
