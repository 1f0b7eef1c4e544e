"""From messages to token ids and back, by the model's own tokenizer and chat template."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from outrider.errors import CorruptFile


class Tokenizer:
    """The tokenizer in a GGUF file or a Hugging Face folder."""

    def __init__(self, path: Path) -> None:
        # Imported here because it takes seconds, which `outrider --help` should not.
        from transformers import AutoTokenizer  # noqa: PLC0415

        folder, extra = (path, {}) if path.is_dir() else (path.parent, {"gguf_file": path.name})
        try:
            self._tokenizer: Any = AutoTokenizer.from_pretrained(
                folder, local_files_only=True, trust_remote_code=False, **extra
            )
        except Exception as error:
            raise CorruptFile(
                f"{path} has no readable tokenizer ({' '.join(str(error).split())[:120]})",
                "tokenizer.json or GGUF tokenizer metadata",
                "download the model again",
            ) from error

    @property
    def has_chat_template(self) -> bool:
        """Whether messages are laid out as the model was trained on them."""
        return bool(self._tokenizer.chat_template)

    @property
    def eos_token_id(self) -> int | None:
        """The token that ends an answer, where the tokenizer names one."""
        token: int | None = self._tokenizer.eos_token_id
        return token

    def encode_chat(self, messages: Sequence[Mapping[str, str]]) -> list[int]:
        """Token ids of a conversation, ready for the answer; plain text without a template."""
        if not self.has_chat_template:
            return list(self._tokenizer.encode("\n".join(each["content"] for each in messages)))
        return list(
            self._tokenizer.apply_chat_template(
                [dict(each) for each in messages], add_generation_prompt=True, return_dict=False
            )
        )

    def decode(self, token_ids: Sequence[int]) -> str:
        """The text of `token_ids`, special tokens included."""
        return str(self._tokenizer.decode(token_ids))
