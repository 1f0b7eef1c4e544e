"""Logs on disk, read."""

import io
import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import httpx2

from outrider.records.reading import BadRecord, NoMetrics, Place
from outrider.replay.answer import LoggedAnswer
from outrider.replay.logs.base import Logged
from outrider.replay.logs.reading import LogReader


class Letters:
    """A tokenizer whose tokens are the letters' codes; 1 begins an answer."""

    name = "letters"
    vocabulary_tokens = 0x110000

    def encode(self, text: str) -> list[int]:
        return [ord(letter) for letter in text]

    def encode_chat(self, messages: Iterable[Any]) -> list[int]:
        return [*self.encode("|".join(f"{m['role']}:{m['content']}" for m in messages)), 1]


def read(reader: LogReader, *paths: Path) -> list[tuple[Place, Logged]]:
    with httpx2.Client() as http:
        return [*reader.read(map(str, paths), stdin=io.BytesIO(), http=http)]


def read_rows(folder: Path, *rows: object, reader: LogReader | None = None) -> list[Logged]:
    """What a file of these JSON lines reads as."""
    path = folder / "log.jsonl"
    path.write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    return [each for _, each in read(reader or LogReader(encoder=Letters()), path)]


def answer(logged: Logged) -> LoggedAnswer:
    assert isinstance(logged, LoggedAnswer), logged
    return logged


def reason(logged: Logged) -> str:
    assert isinstance(logged, (BadRecord, NoMetrics)), logged
    return logged.reason


def ids(logged: Logged) -> tuple[list[int], list[int]]:
    found = answer(logged)
    return found.prompt.tolist(), found.completion.tolist()


def said(logged: Logged) -> tuple[str, str]:
    """Prompt and completion of an answer that `Letters` encoded."""
    prompt, completion = ids(logged)
    return "".join(map(chr, prompt)), "".join(map(chr, completion))
