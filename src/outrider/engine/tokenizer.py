"""From messages to token ids and back, by the model's own tokenizer and chat template."""

from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path
from types import MappingProxyType
from typing import Any

from outrider.engine.detokenizer import Detokenizer
from outrider.engine.tokenizer_cache import read_converted, read_tokenizer
from outrider.errors import CorruptFile, InvalidWorkload

_ROLES_SHOWN = 8


class TextTooLong(Exception):
    """A text that has at least `fewest_tokens`, which is more than it may have."""

    def __init__(self, fewest_tokens: int) -> None:
        super().__init__(f"at least {fewest_tokens} tokens")
        self.fewest_tokens = fewest_tokens


class Tokenizer:
    """The tokenizer in a GGUF file or a Hugging Face folder.

    A GGUF file's takes seconds to convert; `kept` names a folder that holds it from the first time
    on, as `tokenizer_cache.kept_folder` chooses it.
    """

    def __init__(self, path: Path, *, kept: Path | None = None) -> None:
        try:
            self._tokenizer: Any = (
                read_tokenizer(path)
                if kept is None or path.is_dir()
                else read_converted(path, kept)
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

    def encode_chat(
        self,
        messages: Sequence[Mapping[str, Any]],
        *,
        tools: Sequence[Mapping[str, Any]] | None = None,
        chat_template: str | None = None,
        add_generation_prompt: bool = True,
        continue_final_message: bool = False,
        variables: Mapping[str, Any] = MappingProxyType({}),
        most_tokens: int | None = None,
    ) -> list[int]:
        """Token ids of a conversation, ready for the answer; plain text without a template.

        `chat_template` is used in place of the model's own, and may use `variables`. Raises
        InvalidWorkload where the template refuses the conversation, and as `encode` does.
        """
        if not self.has_chat_template and chat_template is None:
            text = "\n".join(each["content"] for each in messages)
            return self.encode(text, add_special_tokens=True, most_tokens=most_tokens)
        try:
            text = self._tokenizer.apply_chat_template(
                [dict(each) for each in messages],
                **variables,
                tools=None if tools is None else [dict(each) for each in tools],
                chat_template=chat_template,
                add_generation_prompt=add_generation_prompt,
                continue_final_message=continue_final_message,
                tokenize=False,
            )
            return self.encode(text, most_tokens=most_tokens)
        except TextTooLong:
            raise
        except Exception as error:
            roles = ", ".join(str(each.get("role")) for each in messages[:_ROLES_SHOWN])
            raise InvalidWorkload(
                f"the model's chat template refuses a conversation of {roles} "
                f"({' '.join(str(error).split())[:120]})",
                "roles that it knows, in its order",
                "change the messages",
            ) from error

    @property
    def vocabulary_tokens(self) -> int:
        """How many tokens there are, the special ones among them."""
        return len(self._tokenizer)

    @property
    def vocabulary(self) -> Mapping[str, int]:
        """The ids of all tokens by their text, the special ones among them."""
        vocabulary: dict[str, int] = self._tokenizer.backend_tokenizer.get_vocab()
        return vocabulary

    @property
    def special_tokens(self) -> Mapping[str, tuple[str, int]]:
        """Text and id of those of bos, eos, unk and pad that there are."""
        found = {}
        for role in ("bos", "eos", "unk", "pad"):
            token = getattr(self._tokenizer, f"{role}_token")
            if token is not None:
                found[role] = (str(token), int(getattr(self._tokenizer, f"{role}_token_id")))
        return found

    def to_json(self) -> str:
        """Everything about the tokens, as the `tokenizers` library stores it in tokenizer.json."""
        return str(self._tokenizer.backend_tokenizer.to_str())

    def save(self, folder: Path) -> None:
        """Write the files of a Hugging Face folder that hold it, chat template included."""
        self._tokenizer.save_pretrained(folder)

    def decode(self, token_ids: Sequence[int], *, skip_special_tokens: bool = False) -> str:
        """The text of `token_ids`, special tokens included unless they are to be skipped."""
        backend = self._tokenizer.backend_tokenizer
        return str(backend.decode(list(token_ids), skip_special_tokens=skip_special_tokens))

    def encode(
        self, text: str, *, add_special_tokens: bool = False, most_tokens: int | None = None
    ) -> list[int]:
        """The token ids of `text`, without the special tokens that may begin or end one.

        Lets other threads run meanwhile, which the tokenizer's own way to encode one text does not.
        Raises TextTooLong at once for one whose letters alone are too many for `most_tokens`.
        """
        if most_tokens is not None:
            fewest = -(-len(text) // self._longest_token)
            if fewest > most_tokens:
                raise TextTooLong(fewest)
        backend = self._tokenizer.backend_tokenizer
        [encoding] = backend.encode_batch_fast([text], add_special_tokens=add_special_tokens)
        return list(encoding.ids)

    @cached_property
    def _longest_token(self) -> int:
        """How many letters of a text a token may stand for."""
        return max(map(len, self._tokenizer.get_vocab()))

    def token(self, token_id: int) -> str | None:
        """The vocabulary's entry for an id, None for one that it does not have."""
        entry: str | None = self._tokenizer.backend_tokenizer.id_to_token(token_id)
        return entry

    def detokenizer(
        self, prompt: Sequence[int], *, skip_special_tokens: bool = True
    ) -> Detokenizer:
        """What turns one answer to `prompt` into text while its tokens come."""
        backend = self._tokenizer.backend_tokenizer
        return Detokenizer(backend, prompt, skip_special_tokens=skip_special_tokens)
