"""The tokenizer that `--tokenizer` names: a file, a folder, or a model of the hub."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from outrider.errors import CorruptFile, InvalidSetting
from outrider.replay.logs.text_encoder import TextEncoder

_FILE = "tokenizer.json"
_GGUF = b"GGUF"
_WITH_TEMPLATE = "tokenizer_config.json"


class BareTokenizer:
    """A tokenizer.json alone, which knows no chat template: messages are joined by newlines."""

    def __init__(self, path: Path) -> None:
        from tokenizers import Tokenizer  # noqa: PLC0415  only text needs it

        self.name = str(path)
        try:
            self._tokenizer: Any = Tokenizer.from_file(str(path))
        except Exception as error:
            raise _unreadable(self.name, error) from error

    @property
    def vocabulary_tokens(self) -> int:
        """How many tokens there are."""
        return int(self._tokenizer.get_vocab_size())

    def encode(self, text: str) -> list[int]:
        """The ids of a text, without special tokens around it."""
        return list(self._tokenizer.encode(text, add_special_tokens=False).ids)

    def encode_chat(self, messages: Sequence[Mapping[str, Any]]) -> list[int]:
        """The ids of what the messages say, without any mark between them."""
        return self.encode("\n".join(str(each.get("content") or "") for each in messages))


class ModelTokenizer:
    """A model's tokenizer, with its chat template, by folder or hub id."""

    def __init__(self, name: str) -> None:
        from transformers import AutoTokenizer  # noqa: PLC0415  takes seconds

        self.name = name
        try:
            self._tokenizer: Any = AutoTokenizer.from_pretrained(name, trust_remote_code=False)
        except Exception as error:
            raise _unreadable(name, error) from error

    @property
    def vocabulary_tokens(self) -> int:
        """How many tokens there are, the special ones among them."""
        return len(self._tokenizer)

    def encode(self, text: str) -> list[int]:
        """The ids of a text, without special tokens around it."""
        return list(self._tokenizer.encode(text, add_special_tokens=False))

    def encode_chat(self, messages: Sequence[Mapping[str, Any]]) -> list[int]:
        """The ids of the conversation as the template lays it out."""
        if not self._tokenizer.chat_template:
            return self.encode("\n".join(str(each.get("content") or "") for each in messages))
        text = self._tokenizer.apply_chat_template(
            [dict(each) for each in messages], add_generation_prompt=True, tokenize=False
        )
        return self.encode(str(text))


def read_text_encoder(name: str) -> TextEncoder:
    """Return the tokenizer of a tokenizer.json, a model's folder, or a hub id.

    Raises InvalidSetting where there is no such file, CorruptFile where none can be read from it.
    """
    path = Path(name)
    if path.name == _FILE and (path.parent / _WITH_TEMPLATE).is_file() and path.is_file():
        return ModelTokenizer(str(path.parent))
    if path.is_file():
        with path.open("rb") as file:
            if file.read(4) == _GGUF:
                raise InvalidSetting(
                    f"--tokenizer {name}, which is GGUF",
                    "a tokenizer.json, a model's folder or a hub id",
                    "take that of the model that the file was made from",
                )
        return BareTokenizer(path)
    if path.suffix == ".json" or (path.is_absolute() and not path.exists()):
        raise InvalidSetting(
            f"--tokenizer {name}, which does not exist",
            "a tokenizer.json, a model's folder or a hub id",
            "check the name",
        )
    return ModelTokenizer(name)


def _unreadable(name: str, error: Exception) -> CorruptFile:
    return CorruptFile(
        f"--tokenizer {name} cannot be read ({' '.join(str(error).split())[:120]})",
        "a tokenizer.json, a model's folder or a hub id",
        "check the name, or log token ids, which need none",
    )
