"""What tests of commands know of the fixture `run`."""

from collections.abc import Callable
from typing import Protocol


class Result(Protocol):
    """How a command ended and what it wrote."""

    exit_code: int
    out: str
    err: str


Run = Callable[..., Result]
