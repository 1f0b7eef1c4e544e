from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest
from tests.engine.constraints.letters import SIZE, compiler, text_of, vocabulary_of
from tests.engine.constraints.wishes import WISHES

from outrider.engine.constraints.compiler import ConstraintCompiler
from outrider.engine.constraints.limits import ConstraintLimits
from outrider.engine.constraints.spec import ConstraintSpec
from outrider.errors import InvalidSetting


@pytest.mark.parametrize(
    ("kind", "value", "told"),
    [
        ("json", "{", "enclosed in double quotes"),
        ("json", "[1]", "a schema is an object or true"),
        ("json", "false", "a schema is an object or true"),
        ("json", '{"minimum": NaN}', "expected value"),
        ("json", '{"const": "\\ud800"}', "hex escape"),
        ("json", '{"type": "nothing"}', "Invalid type: nothing"),
        ("json", '{"type": "array", "uniqueItems": true}', 'Unimplemented keys: ["uniqueItems"]'),
        ("json", '{"x-guidance": {"lenient": true}, "uniqueItems": true}', "Unimplemented keys"),
        ("json", '{"$ref": "http://example.com/a"}', "does not fetch"),
        ("json", '{"type": "string", "pattern": "("}', "unclosed group"),
        ("json", '{"enum": []}', "Unsatisfiable"),
        ("json", '{}], "x": [{', "Extra data"),
        ("regex", "(", "(unclosed group)"),
        ("regex", "(?=a)b", "look-around"),
        ("regex", "(a)\\1", "backreferences"),
        ("regex", "[^\\s\\S]", "no token"),
        ("regex", "a{0}", "nothing but the empty text"),
        ("grammar", "?", "GBNF"),
        ("grammar", "root ::= " + "(" * 3_000, "GBNF"),
        ("grammar", "start: nothing", 'unknown name: "nothing"'),
        ("grammar", 'start: "a', "lexer error"),
        ("grammar", "start: start", "no token"),
        ("choice", ("z",), "no token"),
    ],
)
def test_what_cannot_be_held_is_refused_in_one_short_line(kind: Any, value: Any, told: str) -> None:
    with pytest.raises(InvalidSetting) as caught:
        compiler().compile(ConstraintSpec(kind, value))
    line = str(caught.value)
    assert line.startswith(f"a {kind} constraint that cannot be used (")
    assert told in line
    assert "\n" not in line
    assert len(line) < 400


def test_limits_come_before_anything_is_parsed() -> None:
    small = ConstraintCompiler(vocabulary_of(), ConstraintLimits(max_bytes=10))
    with pytest.raises(InvalidSetting, match="11 bytes"):
        small.compile(ConstraintSpec("regex", "(" * 11))


@pytest.mark.parametrize("wish", WISHES)
def test_every_kind_compiles_once(wish: str) -> None:
    spec, _ = WISHES[wish]
    assert compiler().compile(spec) is compiler().compile(ConstraintSpec(spec.kind, spec.value))


def test_a_schema_of_true_is_any_json_value() -> None:
    allowed = np.ones((1, SIZE), np.bool_)
    anything = compiler().compile(ConstraintSpec("json", "true")).start()
    assert anything.allow(np.empty(0, np.int32), allowed) == 0
    assert set(text_of(np.flatnonzero(allowed[0]).tolist())) >= set('{["tfn0-')


def rule_chain(length: int) -> str:
    rules = "\n".join(f"r{i}: r{i + 1}" for i in range(length))
    return f'start: r0\n{rules}\nr{length}: "a"'


def reference_chain(length: int) -> str:
    links = ",".join(f'"{i}":{{"$ref":"#/$defs/{i + 1}"}}' for i in range(length))
    return f'{{"$ref":"#/$defs/0","$defs":{{{links},"{length}":{{"const":"a"}}}}}}'


@pytest.mark.parametrize(
    "spec",
    [
        ConstraintSpec("grammar", rule_chain(5_000)),
        ConstraintSpec("json", reference_chain(1_900)),
    ],
    ids=["rules", "references"],
)
def test_a_chain_as_long_as_the_limits_allow_does_not_run_out_of_stack(
    spec: ConstraintSpec,
) -> None:
    grammar = ConstraintCompiler(vocabulary_of()).compile(spec)
    assert not grammar.start().ended


def test_threads_compile_and_start_the_same_grammars_at_once() -> None:
    shared = ConstraintCompiler(vocabulary_of())
    specs = [spec for spec, _ in WISHES.values()] * 8
    with ThreadPoolExecutor(8) as pool:
        begun = list(pool.map(lambda spec: shared.compile(spec).start(), specs))
    assert all(each.failure is None for each in begun)
