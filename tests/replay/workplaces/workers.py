"""Workers of the tests' own: one file after another in this process, and some that die."""

import os
import signal
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from outrider.replay.lookup.base import LookupPass
from outrider.replay.workplaces.base import Work
from outrider.replay.workplaces.log_files import LogFile
from outrider.replay.workplaces.spreading import Parts, replay_file


def one_by_one(work: Work, files: Sequence[LogFile]) -> Parts:
    yield from (replay_file(work, file) for file in files)


@dataclass(frozen=True)
class Deadly:
    """A setting that kills whoever begins with it."""

    method: ClassVar[str] = "ngram"
    name: ClassVar[str] = "deadly"
    remembers: ClassVar[bool] = False
    server_keys: ClassVar[dict[str, int | float | str]] = {}

    def start(self) -> LookupPass:
        os.kill(os.getpid(), signal.SIGKILL)
        raise AssertionError
