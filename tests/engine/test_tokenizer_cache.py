import shutil
from collections.abc import Callable
from pathlib import Path

import gguf
import pytest

from outrider.bench.workload import bundled_workload
from outrider.engine.models.store import cache_directory, locate_model
from outrider.engine.tokenizer import Tokenizer
from outrider.engine.tokenizer_cache import SEAL_FILE, kept_folder

TEMPLATE = (
    "{% for m in messages %}<|start|>{{ m.role }}\n{{ m.content }}<|end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|start|>assistant\n{% endif %}"
)
CHAT = [
    {"role": "system", "content": "Answer in one word."},
    {"role": "user", "content": "  Größe? <|end|> 12345\n\n\tdef f(x): return 'x'  "},
]


def printable(byte: int) -> str:
    """The character that stands for a byte in a byte-level vocabulary."""
    own = [*range(33, 127), *range(161, 173), *range(174, 256)]
    others = [other for other in range(256) if other not in own]
    return chr(byte) if byte in own else chr(256 + others.index(byte))


@pytest.fixture(scope="module")
def gguf_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A file that holds a byte-level tokenizer with a few merges, and no weights."""
    space, tokens = printable(ord(" ")), ["<|start|>", "<|end|>"]
    merges = ["e r", "s w", f"{space} {space}", "sw er"]
    tokens += [printable(byte) for byte in range(256)]
    tokens += [merge.replace(" ", "") for merge in merges]
    path = tmp_path_factory.mktemp("model") / "tiny.gguf"
    writer = gguf.GGUFWriter(path, "llama")
    writer.add_name("tiny")
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre("default")
    writer.add_token_list(tokens)
    writer.add_token_types([gguf.TokenType.CONTROL] * 2 + [gguf.TokenType.NORMAL] * 260)
    writer.add_token_merges(merges)
    writer.add_bos_token_id(0)
    writer.add_eos_token_id(1)
    writer.add_unk_token_id(0)
    writer.add_chat_template(TEMPLATE)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


@pytest.fixture(scope="module")
def kept_once(gguf_file: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What the first reading of the file leaves in the cache."""
    folder = kept_folder(tmp_path_factory.mktemp("cache"), "0" * 64)
    Tokenizer(gguf_file, kept=folder)
    return folder


@pytest.fixture
def kept(kept_once: Path, tmp_path: Path) -> Path:
    return shutil.copytree(kept_once, tmp_path / "tokenizers" / kept_once.name)


def behaviour(tokenizer: Tokenizer) -> tuple[object, ...]:
    token_ids = tokenizer.encode_chat(CHAT)
    return token_ids, tokenizer.decode(token_ids), tokenizer.eos_token_id


def contents(folder: Path) -> dict[str, bytes]:
    return {file.name: file.read_bytes() for file in folder.iterdir()}


def test_a_kept_tokenizer_needs_no_file_and_encodes_decodes_and_lays_out_chats_alike(
    gguf_file: Path, kept: Path, tmp_path: Path
) -> None:
    converted = Tokenizer(gguf_file)
    read_back = Tokenizer(tmp_path / "absent.gguf", kept=kept)
    assert converted.has_chat_template
    assert behaviour(read_back) == behaviour(converted)
    assert converted.eos_token_id == 1
    assert "Größe?" in converted.decode(read_back.encode_chat(CHAT))


def test_keeping_leaves_nothing_else_in_the_cache_or_beside_the_file(
    gguf_file: Path, kept_once: Path
) -> None:
    assert list(gguf_file.parent.iterdir()) == [gguf_file]
    assert list(kept_once.parent.iterdir()) == [kept_once]


@pytest.mark.parametrize("name", ["tokenizer.json", "chat_template.jinja", SEAL_FILE])
@pytest.mark.parametrize("damage", [Path.unlink, lambda file: file.write_bytes(b"\xff{}")])
def test_a_kept_tokenizer_that_was_altered_is_converted_and_kept_anew(
    gguf_file: Path, kept_once: Path, kept: Path, name: str, damage: Callable[[Path], object]
) -> None:
    damage(kept / name)
    assert behaviour(Tokenizer(gguf_file, kept=kept)) == behaviour(Tokenizer(gguf_file))
    assert contents(kept) == contents(kept_once)


def test_a_file_that_does_not_belong_to_a_kept_tokenizer_makes_it_invalid(
    gguf_file: Path, kept_once: Path, kept: Path
) -> None:
    (kept / "added_tokens.json").write_text('{"swer": 0}')
    Tokenizer(gguf_file, kept=kept)
    assert contents(kept) == contents(kept_once)


def test_a_cache_that_cannot_be_written_costs_only_the_time(
    gguf_file: Path, tmp_path: Path
) -> None:
    (tmp_path / "file").write_bytes(b"")
    tokenizer = Tokenizer(gguf_file, kept=kept_folder(tmp_path / "file", "0" * 64))
    assert behaviour(tokenizer) == behaviour(Tokenizer(gguf_file))


def test_a_folder_of_the_users_is_read_as_it_is(kept_once: Path, tmp_path: Path) -> None:
    tokenizer = Tokenizer(kept_once, kept=tmp_path / "unused")
    assert tokenizer.eos_token_id == 1
    assert list(tmp_path.iterdir()) == []


def test_tokenizers_are_told_apart_by_the_hash_of_their_file(tmp_path: Path) -> None:
    assert kept_folder(tmp_path, "a" * 64) != kept_folder(tmp_path, "b" * 64)


@pytest.mark.slow
def test_the_real_models_kept_tokenizer_encodes_every_bundled_prompt_alike(tmp_path: Path) -> None:
    path = locate_model("smollm2-135m", cache_dir=cache_directory(), report=print).path
    converted = Tokenizer(path, kept=tmp_path / "kept")
    read_back = Tokenizer(tmp_path / "absent.gguf", kept=tmp_path / "kept")
    for prompt in bundled_workload().prompts:
        token_ids = converted.encode_chat(prompt.chat)
        assert read_back.encode_chat(prompt.chat) == token_ids
        assert read_back.decode(token_ids) == converted.decode(token_ids)
