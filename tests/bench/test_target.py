import json
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import psutil
import pytest

from outrider.bench.target import Target, load_target, tokenized, usable_cores
from outrider.bench.workload import Message, Prompt
from outrider.engine.models.settings import ModelSettings
from outrider.engine.models.store import ModelFiles
from outrider.engine.tokenizer import Tokenizer
from outrider.errors import CorruptFile, InvalidWorkload, NotEnoughMemory
from outrider.records.prompt import PromptRecord

SETTINGS = ModelSettings(backend="torch", dtype="float32", threads=1)
END, START = 256, 257
POSITIONS = 4096


def chat(*messages: Message, max_tokens: int = 8) -> Prompt:
    return Prompt("p", "chat", messages, max_tokens)


HELLO = chat(Message("user", "hello"))


@pytest.fixture(scope="module")
def tokenizer(tiny_model: Path) -> Tokenizer:
    return Tokenizer(tiny_model)


@pytest.fixture
def variant(tiny_model: Path, tmp_path: Path) -> Callable[..., Path]:
    """The tiny model with a changed config."""

    def make(**changes: object) -> Path:
        folder = tmp_path / "variant"
        shutil.copytree(tiny_model, folder)
        config = json.loads((folder / "config.json").read_text())
        (folder / "config.json").write_text(json.dumps(config | changes))
        return folder

    return make


def load(folder: Path, tokenizer: Tokenizer, *prompts: PromptRecord) -> Target:
    files = ModelFiles("tiny", folder, "path", "ab" * 32, "someone/tiny")
    return load_target(files, tokenizer, SETTINGS, prompts)


def record(length: int, max_tokens: int) -> PromptRecord:
    return PromptRecord(f"of {length}", "chat", (1,) * length, max_tokens, "[]")


def test_prompts_are_laid_out_by_the_chat_template(tokenizer: Tokenizer) -> None:
    [prompt] = tokenized([HELLO], tokenizer, None)
    assert prompt.token_ids.count(START) == 2
    assert prompt.token_ids.count(END) == 1
    assert tokenizer.decode(prompt.token_ids) == "<|start|>user: hello<|end|><|start|>assistant: "
    assert (prompt.prompt_id, prompt.kind, prompt.max_tokens) == ("p", "chat", 8)
    assert json.loads(prompt.messages_json) == [{"role": "user", "content": "hello"}]


@pytest.mark.parametrize(("cap", "expected"), [(None, 8), (3, 3), (8, 8), (100, 8)])
def test_the_cap_lowers_a_prompts_own_limit_and_never_raises_it(
    tokenizer: Tokenizer, cap: int | None, expected: int
) -> None:
    [prompt] = tokenized([HELLO], tokenizer, cap)
    assert prompt.max_tokens == expected


def test_a_chat_that_the_template_refuses_is_named(tokenizer: Tokenizer) -> None:
    asked = chat(Message("system", "be brief"), Message("user", "hello"))
    with pytest.raises(InvalidWorkload, match=r"in prompt 'p' the .* refuses .*no system role"):
        tokenized([asked], tokenizer, None)


def test_the_room_is_that_of_the_longest_prompt_and_its_answer(
    tiny_model: Path, tokenizer: Tokenizer
) -> None:
    target = load(tiny_model, tokenizer, record(10, 100), record(80, 5), record(90, 25))
    assert target.model.max_length == 115


def test_a_prompt_may_fill_the_models_positions(tiny_model: Path, tokenizer: Tokenizer) -> None:
    assert load(tiny_model, tokenizer, record(POSITIONS - 6, 6)).model.max_length == POSITIONS


def test_a_prompt_too_long_for_the_model_is_named(tiny_model: Path, tokenizer: Tokenizer) -> None:
    with pytest.raises(InvalidWorkload) as caught:
        load(tiny_model, tokenizer, record(9, 9), record(POSITIONS - 6, 7))
    assert str(caught.value).startswith("prompt 'of 4090' and its answer take 4097 tokens")
    assert f"the model's {POSITIONS}" in str(caught.value)


def test_a_token_that_the_weights_do_not_know_is_refused(
    tiny_model: Path, tokenizer: Tokenizer
) -> None:
    stranger = replace(record(3, 3), token_ids=(1, START + 1, 2))
    with pytest.raises(CorruptFile, match="gives token 258; expected tokens below the 258"):
        load(tiny_model, tokenizer, record(5, 5), stranger)


def test_the_tokenizers_end_stops_an_answer(tiny_model: Path, tokenizer: Tokenizer) -> None:
    assert load(tiny_model, tokenizer, record(3, 3)).stop_ids == {END}


@pytest.mark.parametrize(("eos", "expected"), [(7, {END, 7}), ([7, 9], {END, 7, 9}), (END, {END})])
def test_the_ends_that_the_config_names_stop_an_answer_too(
    eos: int | list[int], expected: set[int], variant: Callable[..., Path], tokenizer: Tokenizer
) -> None:
    assert load(variant(eos_token_id=eos), tokenizer, record(3, 3)).stop_ids == expected


def test_a_target_says_what_it_is(tiny_model: Path, tokenizer: Tokenizer) -> None:
    target = load(tiny_model, tokenizer, record(3, 3))
    assert (target.backend, target.threads) == ("torch", 1)
    identity = target.identity
    assert (identity.name, identity.source, identity.hub_id) == ("tiny", "path", "someone/tiny")
    assert (identity.sha256, identity.dtype) == ("ab" * 32, "float32")
    block = 64 * 64 * (2 + 1 + 1 + 2) + 3 * 64 * 64 + 2 * 64
    assert identity.parameters == 2 * block + 258 * 64 + 64


def test_weights_that_do_not_fit_are_not_read(
    variant: Callable[..., Path], tokenizer: Tokenizer
) -> None:
    absurd = variant(hidden_size=65_536, num_hidden_layers=200, intermediate_size=262_144)
    with pytest.raises(NotEnoughMemory, match=r"GiB of memory are free; expected \d"):
        load(absurd, tokenizer, record(3, 3))


def test_a_core_is_always_usable_and_never_more_than_there_are() -> None:
    assert 1 <= usable_cores() <= (psutil.cpu_count() or 1)
