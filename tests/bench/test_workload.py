import hashlib
import json
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from outrider.bench.workload import (
    Message,
    Prompt,
    bundled_workload,
    parse_workload,
    quick_subset,
    read_workload,
)
from outrider.errors import InvalidSetting, InvalidWorkload

KINDS = ("chat", "code", "copy", "extract")

SPEC_BENCH_ROWS = """\
{"question_id": 81, "category": "writing", "turns": ["Name a colour.", "Name another."]}
{"question_id": 82, "category": "qa", "turns": ["Name a bird."], "reference": ["a wren"]}
"""

VLLM_CUSTOM_ROWS = """\
{"prompt": "Name a colour.", "output_tokens": 12}
{"prompt": "Name a bird."}
"""


def parse(text: str) -> tuple[Prompt, ...]:
    return parse_workload(text.encode(), "prompts.jsonl").prompts


def test_the_bundled_workload_has_six_distinct_prompts_of_each_kind() -> None:
    workload = bundled_workload()
    assert workload.name == "four-kinds"
    assert Counter(prompt.kind for prompt in workload.prompts) == dict.fromkeys(KINDS, 6)
    assert len({prompt.messages for prompt in workload.prompts}) == 24
    assert all(prompt.prompt_id.startswith(prompt.kind) for prompt in workload.prompts)


def test_bundled_prompts_that_re_use_a_passage_are_longer_than_open_chat() -> None:
    words: dict[str, list[int]] = {kind: [] for kind in KINDS}
    for prompt in bundled_workload().prompts:
        words[prompt.kind].append(len(prompt.messages[0].content.split()))
    assert max(words["chat"]) < 50
    assert min(words["copy"]) > 90
    assert min(words["extract"]) > 60


def test_the_workload_hash_is_the_sha256_of_the_file(tmp_path: Path) -> None:
    file = tmp_path / "mine.jsonl"
    file.write_bytes(b'{"prompt": "Name a colour."}\n')
    workload = read_workload(file)
    assert workload.name == "mine"
    assert workload.sha256 == hashlib.sha256(file.read_bytes()).hexdigest()


def test_a_plain_prompt_becomes_one_user_message_with_the_defaults() -> None:
    (prompt,) = parse('{"prompt": "Name a colour."}')
    assert prompt == Prompt("1", "all", (Message("user", "Name a colour."),), 96)
    assert prompt.chat == [{"role": "user", "content": "Name a colour."}]


def test_every_key_of_a_row_is_taken_over() -> None:
    row = {
        "id": "greeting",
        "kind": "chat",
        "messages": [
            {"role": "system", "content": "Be brief."},
            {"role": "user", "content": "Hello!"},
        ],
        "max_tokens": 7,
    }
    messages = (Message("system", "Be brief."), Message("user", "Hello!"))
    assert parse(json.dumps(row)) == (Prompt("greeting", "chat", messages, 7),)


def test_missing_ids_are_line_numbers_and_blank_lines_count() -> None:
    prompts = parse('\n{"prompt": "a"}\r\n\n{"prompt": "b"}')
    assert [prompt.prompt_id for prompt in prompts] == ["2", "4"]


def test_a_byte_order_mark_and_line_separators_inside_text_are_no_obstacle() -> None:
    (prompt,) = parse_workload('\ufeff{"prompt": "one\u2028two"}'.encode(), "x.jsonl").prompts
    assert prompt.messages[0].content == "one\u2028two"


def test_spec_bench_rows_give_their_first_turn_and_their_category() -> None:
    first, second = parse(SPEC_BENCH_ROWS)
    assert first == Prompt("81", "writing", (Message("user", "Name a colour."),), 96)
    assert (second.prompt_id, second.kind) == ("82", "qa")


def test_vllm_custom_rows_give_their_output_tokens_as_the_cap() -> None:
    assert [prompt.max_tokens for prompt in parse(VLLM_CUSTOM_ROWS)] == [12, 96]


@pytest.mark.parametrize(
    ("text", "seen", "remedy"),
    [
        ("", "has no prompt", "add a line"),
        ("\n \n", "has no prompt", "add a line"),
        ("{", "line 1 is not JSON", "correct that line"),
        ('{"prompt": "a"}\nname a colour', "line 2 is not JSON", "correct that line"),
        ('{"prompt": "\\ud800"}', "line 1 is not JSON", "correct that line"),
        ("[" * 5000, "line 1 is not JSON", "correct that line"),
        ("[1]", "line 1 has [1]; expected an object", "correct that value"),
        ("{}", "line 1 has no prompt", "add a line"),
        ('{"promt": "a"}', "line 1 has the key 'promt'", "rename it to 'prompt'"),
        ('{"prompt": "a", "output_token": 9}', "'output_token'", "rename it to 'output_tokens'"),
        ('{"prompt": "a", "zzz": 9}', "'zzz'; expected the keys id, kind", "remove it"),
        (
            '{"prompt": "a", "max_tokens": 1, "output_tokens": 2}',
            "the key 'output_tokens'",
            "another key already says the same",
        ),
        ('{"prompt": " "}', "' ' as prompt; expected text that is not blank", "correct"),
        ('{"prompt": 3}', "3 as prompt; expected a valid string", "correct"),
        ('{"prompt": "a", "id": true}', "True as id", "correct"),
        ('{"prompt": "a", "max_tokens": 0}', "0 as max_tokens; expected 1 or more", "correct"),
        ('{"prompt": "a", "max_tokens": 1.5}', "1.5 as max_tokens", "correct"),
        ('{"prompt": "a", "turns": ["b"]}', "both 'prompt' and 'turns'", "remove 'turns'"),
        ('{"turns": []}', "[] as turns; expected at least one entry", "correct"),
        ('{"messages": []}', "[] as messages; expected at least one entry", "correct"),
        ('{"messages": [{"role": "user"}]}', "line 1 has no messages.0.content", "add it"),
        (
            '{"messages": [{"role": "tool", "content": "a"}]}',
            "'tool' as messages.0.role; expected 'system', 'user' or 'assistant'",
            "correct",
        ),
        (
            '{"messages": [{"role": "user", "contents": "a", "content": "b"}]}',
            "'contents'; expected the keys role, content",
            "rename it to 'content'",
        ),
        (
            '{"messages": [{"role": "assistant", "content": "a"}]}',
            "ends with a message of the assistant",
            "remove what follows",
        ),
        (
            '{"prompt": "a", "id": 1}\n{"prompt": "b", "id": "1"}',
            "line 2 has the id '1' of line 1",
            "rename one of them",
        ),
        (
            '{"prompt": "a", "id": "2"}\n{"prompt": "b"}',
            "line 2 has the id '2' of line 1",
            "rename",
        ),
    ],
)
def test_a_bad_row_is_named_in_one_line_with_a_remedy(text: str, seen: str, remedy: str) -> None:
    with pytest.raises(InvalidWorkload) as caught:
        parse(text)
    message = str(caught.value)
    assert message.startswith("prompts.jsonl")
    assert seen in message
    assert remedy in caught.value.remedy
    assert "\n" not in message


def test_files_that_cannot_be_read_as_text_are_invalid_workloads(tmp_path: Path) -> None:
    binary = tmp_path / "model.bin"
    binary.write_bytes(b"GGUF\x03\x00\xff\xfe")
    with pytest.raises(InvalidWorkload, match="is not UTF-8 text"):
        read_workload(binary)
    with pytest.raises(InvalidWorkload, match="No such file"):
        read_workload(tmp_path / "absent.jsonl")
    with pytest.raises(InvalidWorkload, match="Is a directory"):
        read_workload(tmp_path)


JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner),
    max_leaves=8,
)
ROW_KEYS = st.sampled_from(
    ["id", "kind", "prompt", "messages", "turns", "max_tokens", "output_tokens", "role", "promt"]
)
MESSAGES = st.lists(
    st.dictionaries(
        st.sampled_from(["role", "content", "name"]),
        st.sampled_from(["user", "system", "assistant", ""]) | JSON_VALUES,
    )
)
ROWS = st.dictionaries(ROW_KEYS, JSON_VALUES | MESSAGES | st.integers(1, 9) | st.just("words"))


def accepted_or_refused_in_one_line(content: bytes) -> None:
    try:
        workload = parse_workload(content, "prompts.jsonl")
    except InvalidWorkload as error:
        refusal = str(error)
    else:
        assert len({prompt.prompt_id for prompt in workload.prompts}) == len(workload.prompts)
        for prompt in workload.prompts:
            assert prompt.max_tokens >= 1
            assert prompt.messages[-1].role == "user"
            assert all(message.content.strip() for message in prompt.messages)
        return
    assert len(refusal.splitlines()) == 1


@given(st.binary() | st.text().map(lambda text: text.encode("utf-8", "surrogatepass")))
def test_any_bytes_are_a_workload_or_an_invalid_workload(content: bytes) -> None:
    accepted_or_refused_in_one_line(content)


@given(st.lists(ROWS | JSON_VALUES, max_size=3))
def test_any_json_rows_are_a_workload_or_an_invalid_workload(rows: list[object]) -> None:
    accepted_or_refused_in_one_line("\n".join(json.dumps(row) for row in rows).encode())


def test_the_quick_subset_of_the_bundled_workload_has_all_four_kinds() -> None:
    subset = quick_subset(bundled_workload().prompts)
    assert [prompt.prompt_id for prompt in subset] == [
        "chat-1",
        "code-1",
        "copy-1",
        "extract-1",
        "chat-2",
        "code-2",
    ]


def test_the_quick_subset_takes_turns_even_when_kinds_are_grouped_and_uneven() -> None:
    prompts = [
        Prompt(prompt_id, prompt_id[0], (Message("user", "Hello!"),), 8)
        for prompt_id in ("a1", "a2", "a3", "b1", "c1", "c2")
    ]
    subset = quick_subset(prompts, count=5)
    assert [prompt.prompt_id for prompt in subset] == ["a1", "b1", "c1", "a2", "c2"]


def test_a_quick_subset_is_never_longer_than_the_workload_nor_empty() -> None:
    prompts = bundled_workload().prompts
    assert set(quick_subset(prompts, count=1000)) == set(prompts)
    with pytest.raises(InvalidSetting, match="0 prompts"):
        quick_subset(prompts, count=0)
