"""The prompts of a comparison: the bundled ones, or the user's from a file of JSON lines."""

import difflib
import hashlib
import json
import reprlib
from collections.abc import Sequence
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import Annotated, Literal

from pydantic import (
    AliasChoices,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    StringConstraints,
    ValidationError,
)

from outrider.errors import InvalidSetting, InvalidWorkload

BUNDLED_FILE = "four-kinds.jsonl"
DEFAULT_KIND = "all"
DEFAULT_MAX_TOKENS = 96

Role = Literal["system", "user", "assistant"]


@dataclass(frozen=True, slots=True)
class Message:
    """One turn of a chat."""

    role: Role
    content: str


@dataclass(frozen=True, slots=True)
class Prompt:
    """One chat to answer; `max_tokens` caps the answer and does not force its length."""

    prompt_id: str
    kind: str
    messages: tuple[Message, ...]
    max_tokens: int

    @property
    def chat(self) -> list[dict[str, str]]:
        """The messages in the form that chat templates take."""
        return [{"role": message.role, "content": message.content} for message in self.messages]

    @property
    def messages_json(self) -> str:
        """The messages as a JSON array."""
        return json.dumps(self.chat, ensure_ascii=False)


@dataclass(frozen=True, slots=True)
class Workload:
    """Prompts in file order, with the file's stem as name and the SHA-256 of its bytes."""

    name: str
    prompts: tuple[Prompt, ...]
    sha256: str


def bundled_workload() -> Workload:
    """The 24 prompts that ship with the package: six each of chat, code, copy and extract."""
    file = resources.files("outrider.bench") / "workloads" / BUNDLED_FILE
    return parse_workload(file.read_bytes(), BUNDLED_FILE)


def read_workload(path: Path) -> Workload:
    """Reads a prompt file, whose rows `parse_workload` describes."""
    try:
        content = path.read_bytes()
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise InvalidWorkload(
            f"{str(path)!r} cannot be read ({reason})",
            "a file of JSON lines",
            "check the path and its permissions",
        ) from error
    return parse_workload(content, path.name)


def parse_workload(content: bytes, file_name: str) -> Workload:
    """Parses JSON lines; InvalidWorkload names the first line that is not a prompt.

    A row has one of `prompt` (a string) and `messages`, and optionally `id` (default: the line
    number), `kind` and `max_tokens`. Also read are rows of vLLM's custom data set (`prompt`,
    `output_tokens`) and of Spec-Bench (`question_id`, `category`, and `turns`, the first of which
    is taken).
    """
    try:
        lines = content.decode("utf-8-sig").split("\n")
    except UnicodeDecodeError as error:
        raise InvalidWorkload(
            f"{file_name} is not UTF-8 text (byte {error.start})",
            "a text file of JSON lines",
            "save it as UTF-8 or give another file",
        ) from error
    prompts: list[Prompt] = []
    line_of: dict[str, int] = {}
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        where = f"{file_name} line {number}"
        prompt = _parse_row(line, number, where)
        if prompt.prompt_id in line_of:
            raise InvalidWorkload(
                f"{where} has the id {prompt.prompt_id!r} of line {line_of[prompt.prompt_id]}",
                "a different id for every prompt",
                "rename one of them or leave all ids out",
            )
        line_of[prompt.prompt_id] = number
        prompts.append(prompt)
    if not prompts:
        raise InvalidWorkload(f"{file_name} has no prompt", "one prompt a line", _ADD_PROMPT)
    return Workload(Path(file_name).stem, tuple(prompts), hashlib.sha256(content).hexdigest())


def quick_subset(prompts: Sequence[Prompt], count: int = 6) -> tuple[Prompt, ...]:
    """Takes `count` prompts in turn from each kind, kinds and prompts in their given order."""
    if count < 1:
        raise InvalidSetting(f"{count} prompts", "at least 1", "ask for one prompt or more")
    turn: dict[str, int] = {}
    turns = []
    for prompt in prompts:
        turn[prompt.kind] = turn.get(prompt.kind, 0) + 1
        turns.append(turn[prompt.kind])
    kinds = list(turn)
    order = sorted(
        range(len(prompts)), key=lambda index: (turns[index], kinds.index(prompts[index].kind))
    )
    return tuple(prompts[index] for index in order[:count])


_ADD_PROMPT = 'add a line like {"prompt": "Why is the sky blue?"}'


def _text_of_number(value: object) -> object:
    # Spec-Bench numbers its questions; a bool is an int to Python and stays an error.
    return str(value) if type(value) is int else value


_Text = Annotated[str, StringConstraints(pattern=r"\S")]


class _MessageRow(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)

    role: Role
    content: _Text


class _Row(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)

    id: Annotated[_Text | None, BeforeValidator(_text_of_number)] = Field(
        None, validation_alias=AliasChoices("id", "question_id")
    )
    kind: _Text = Field(DEFAULT_KIND, validation_alias=AliasChoices("kind", "category"))
    prompt: _Text | None = None
    messages: Annotated[list[_MessageRow], Field(min_length=1)] | None = None
    turns: Annotated[list[_Text], Field(min_length=1)] | None = None
    max_tokens: Annotated[int, Field(ge=1)] | None = Field(
        None, validation_alias=AliasChoices("max_tokens", "output_tokens")
    )
    reference: object = None  # Spec-Bench's model answers, which no measurement needs


_ROW_KEYS = ("id", "kind", "prompt", "messages", "max_tokens")
_FOREIGN_KEYS = ("output_tokens", "question_id", "category", "turns")
_MESSAGE_KEYS = tuple(_MessageRow.model_fields)


def _parse_row(line: str, number: int, where: str) -> Prompt:
    try:
        row = _Row.model_validate_json(line)
    except ValidationError as error:
        raise _explained(error, where) from error
    return Prompt(
        prompt_id=row.id if row.id is not None else str(number),
        kind=row.kind,
        messages=_messages(row, where),
        max_tokens=row.max_tokens if row.max_tokens is not None else DEFAULT_MAX_TOKENS,
    )


def _messages(row: _Row, where: str) -> tuple[Message, ...]:
    given = [key for key in ("prompt", "messages", "turns") if getattr(row, key) is not None]
    if len(given) != 1:
        seen = f"both {given[0]!r} and {given[1]!r}" if given else "no prompt"
        remedy = f"remove {given[1]!r}" if given else _ADD_PROMPT
        raise InvalidWorkload(f"{where} has {seen}", "one of 'prompt' and 'messages'", remedy)
    if row.messages is None:
        text = row.prompt if row.prompt is not None else (row.turns or [""])[0]
        return (Message("user", text),)
    if row.messages[-1].role != "user":
        raise InvalidWorkload(
            f"{where} ends with a message of the {row.messages[-1].role}",
            "a last message of the user, to be answered",
            "remove what follows the user's last message",
        )
    return tuple(Message(message.role, message.content) for message in row.messages)


def _explained(error: ValidationError, where: str) -> InvalidWorkload:
    first = error.errors(include_url=False)[0]
    place = ".".join(str(part) for part in first["loc"])
    match first["type"]:
        case "json_invalid":
            reason = (
                first["msg"].removeprefix("Invalid JSON: ").replace(" line 1 column", " column")
            )
            return InvalidWorkload(
                f"{where} is not JSON ({reason})", "one JSON object a line", "correct that line"
            )
        case "extra_forbidden":
            key = str(first["loc"][-1])
            known = _ROW_KEYS if len(first["loc"]) == 1 else _MESSAGE_KEYS
            seen = f"{where} has the key {reprlib.repr(key)}"
            return InvalidWorkload(seen, f"the keys {', '.join(known)}", _key_remedy(key, known))
        case "missing":
            return InvalidWorkload(f"{where} has no {place}", "a role and a content", "add it")
        case kind:
            seen = f"{where} has {reprlib.repr(first['input'])}" + (f" as {place}" if place else "")
            expected = _EXPECTED.get(kind, first["msg"].removeprefix("Input should be "))
            return InvalidWorkload(seen, expected, "correct that value")


_EXPECTED = {
    "greater_than_equal": "1 or more",
    "string_pattern_mismatch": "text that is not blank",
    "too_short": "at least one entry",
}


def _key_remedy(key: str, known: tuple[str, ...]) -> str:
    if key in _FOREIGN_KEYS or key in known:
        return "remove it, for another key already says the same"
    nearest = difflib.get_close_matches(key, known + _FOREIGN_KEYS, n=1)
    return f"rename it to {nearest[0]!r}" if nearest else "remove it"
