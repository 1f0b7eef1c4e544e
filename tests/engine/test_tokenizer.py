import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from tokenizers import Tokenizer as Backend
from tokenizers import decoders, models, pre_tokenizers

from outrider.engine.tokenizer import Tokenizer
from outrider.errors import CorruptFile, InvalidWorkload

TEMPLATE = (
    "{% for message in messages %}"
    "{% if message.role == 'judge' %}{{ raise_exception('no judges') }}{% endif %}"
    "<|start|>{{ message.role }}:{{ message.content }}<|end|>"
    "{% endfor %}{% if add_generation_prompt %}<|start|>assistant:{% endif %}"
)
CHAT = [
    {"role": "system", "content": "Be brief."},
    {"role": "user", "content": "Größe von 漢字?\n\tdef f(x): return 1  "},
]


@pytest.fixture(scope="module")
def backend() -> Backend:
    """Every byte a token, and two tokens that mark the turns of a chat."""
    vocabulary = {letter: i for i, letter in enumerate(sorted(pre_tokenizers.ByteLevel.alphabet()))}
    tokenizer = Backend(models.BPE(vocab=vocabulary, merges=[]))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.add_special_tokens(["<|start|>", "<|end|>"])
    return tokenizer


@pytest.fixture(scope="module")
def save(
    backend: Backend, tmp_path_factory: pytest.TempPathFactory
) -> Callable[[str | None, str | None], Path]:
    """Saves the tokenizer with a chat template and an end of text, or without."""
    from transformers import PreTrainedTokenizerFast  # noqa: PLC0415  takes seconds

    def saved(template: str | None, eos_token: str | None) -> Path:
        folder = tmp_path_factory.mktemp("tokenizer")
        PreTrainedTokenizerFast(
            tokenizer_object=backend, chat_template=template, eos_token=eos_token
        ).save_pretrained(folder)
        return folder

    return saved


@pytest.fixture(scope="module")
def folder(save: Callable[[str | None, str | None], Path]) -> Path:
    return save(TEMPLATE, "<|end|>")


def test_a_chat_is_laid_out_by_the_template_and_asks_for_an_answer(
    folder: Path, backend: Backend
) -> None:
    tokenizer = Tokenizer(folder)
    assert tokenizer.has_chat_template
    text = f"<|start|>system:{CHAT[0]['content']}<|end|>"
    text += f"<|start|>user:{CHAT[1]['content']}<|end|><|start|>assistant:"
    assert tokenizer.encode_chat(CHAT) == backend.encode(text).ids


def test_turns_are_marked_by_single_tokens(folder: Path) -> None:
    token_ids = Tokenizer(folder).encode_chat(CHAT)
    assert token_ids.count(256) == 3
    assert token_ids.count(257) == 2


def test_without_a_template_the_messages_are_joined_as_plain_text(
    save: Callable[[str | None, str | None], Path], backend: Backend
) -> None:
    tokenizer = Tokenizer(save(None, None))
    assert not tokenizer.has_chat_template
    joined = f"{CHAT[0]['content']}\n{CHAT[1]['content']}"
    assert tokenizer.encode_chat(CHAT) == backend.encode(joined).ids


def test_decoding_gives_back_every_byte_and_the_special_tokens(folder: Path) -> None:
    tokenizer = Tokenizer(folder)
    text = tokenizer.decode(tokenizer.encode_chat(CHAT))
    assert text.endswith(f"<|start|>user:{CHAT[1]['content']}<|end|><|start|>assistant:")
    # Neither lost nor added: spaces before punctuation, which some tokenizers clean up.
    spaced = [{"role": "user", "content": "a , b . c ' d n't"}]
    assert "a , b . c ' d n't" in tokenizer.decode(tokenizer.encode_chat(spaced))


def test_the_end_of_text_is_the_tokenizers_own(
    folder: Path, save: Callable[[str | None, str | None], Path]
) -> None:
    assert Tokenizer(folder).eos_token_id == 257
    assert Tokenizer(save(TEMPLATE, None)).eos_token_id is None


def test_messages_that_the_template_refuses_are_told_with_its_reason(folder: Path) -> None:
    with pytest.raises(InvalidWorkload, match=r"chat template refuses .*no judges") as caught:
        Tokenizer(folder).encode_chat([{"role": "judge", "content": "Guilty."}])
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("content", ["", "{", '{"model": {"type": "Nothing"}}', "[]"])
def test_a_tokenizer_that_does_not_parse_is_told_in_one_line(
    content: str, folder: Path, tmp_path: Path
) -> None:
    damaged = Path(shutil.copytree(folder, tmp_path / "model"))
    (damaged / "tokenizer.json").write_text(content)
    with pytest.raises(CorruptFile, match="has no readable tokenizer") as caught:
        Tokenizer(damaged)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("left", [[], ["tokenizer_config.json"]])
def test_a_folder_without_a_vocabulary_has_no_tokenizer(
    left: list[str], folder: Path, tmp_path: Path
) -> None:
    for name in left:
        shutil.copy(folder / name, tmp_path)
    (tmp_path / "config.json").write_text(json.dumps({"model_type": "llama"}))
    with pytest.raises(CorruptFile, match="has no readable tokenizer"):
        Tokenizer(tmp_path)


def test_a_gguf_file_without_a_vocabulary_has_no_tokenizer(tmp_path: Path) -> None:
    file = tmp_path / "tiny.gguf"
    file.write_bytes(b"GGUF")
    with pytest.raises(CorruptFile, match=r"tiny\.gguf has no readable tokenizer"):
        Tokenizer(file)
