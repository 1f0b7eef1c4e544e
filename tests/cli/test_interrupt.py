"""Ctrl-C on a terminal, in another process."""

import errno
import os
import pty
import re
import signal
import subprocess
from collections.abc import Callable
from pathlib import Path

from tests.cli.running import Result
from tests.cli.script import SCRIPT

from outrider.records.evidence import Evidence, RequestKey
from outrider.records.evidence_reader import read_evidence


def interrupted(
    number: signal.Signals, when: Callable[[str], bool], *arguments: object
) -> tuple[int, str]:
    """Runs `outrider` on a terminal and signals it `when` that shows something.

    Returns the exit code and all that was shown.
    """
    command = [*SCRIPT, *map(str, arguments)]
    terminal, child_end = pty.openpty()
    shown = ""
    with subprocess.Popen(
        command,
        stdin=child_end,
        stdout=child_end,
        stderr=child_end,
        env={**os.environ, "TERM": "xterm", "COLUMNS": "100", "NO_COLOR": "1"},
    ) as child:
        os.close(child_end)
        sent = False
        while part := _read(terminal):
            shown += part
            if not sent and when(shown):
                child.send_signal(number)
                sent = True
    os.close(terminal)
    return child.returncode, shown


def _read(terminal: int) -> str:
    """What is shown next; nothing when the process has ended."""
    try:
        return os.read(terminal, 65_536).decode(errors="replace")
    except OSError as error:
        if error.errno != errno.EIO:  # how Linux tells that nobody is left
            raise
        return ""


def measured_more_than(count: int) -> Callable[[str], bool]:
    def reached(shown: str) -> bool:
        return any(int(done) > count for done in re.findall(r"(\d+)/\d+ requests", shown))

    return reached


def keys(evidence: Evidence) -> list[RequestKey]:
    return [
        RequestKey(request.arm, request.prompt_id, request.repeat) for request in evidence.measured
    ]


def test_an_interrupted_run_keeps_what_it_measured_and_is_resumed(
    run: Callable[..., Result],
    tiny_model: Path,
    workload: Path,
    tmp_path: Path,
    quiet: tuple[str, ...],
) -> None:
    path = tmp_path / "run.duckdb"
    exit_code, shown = interrupted(
        signal.SIGINT, measured_more_than(2),
        "tune", tiny_model, "--workload", workload, "--repeats", 3, "--k", 2, "--output", path,
        *quiet,
    )  # fmt: skip
    assert exit_code == 130
    assert re.search(r"left.*\d:\d\d:\d\d", shown)
    assert f"interrupted; what was measured is in {path}, go on with: " in shown
    assert "Traceback" not in shown
    assert [each.name for each in tmp_path.glob("run*")] == ["run.duckdb"]

    half = read_evidence(path)
    assert 2 < len(half.measured) < 6 * 3 * 2
    assert run("report", path).exit_code == 0

    resumed = run("tune", "--resume", path)
    assert resumed.exit_code == 0
    assert "Incomplete" not in resumed.out
    whole = read_evidence(path)
    assert whole.complete
    assert whole.measured[: len(half.measured)] == half.measured
    assert len(keys(whole)) == len(set(keys(whole))) == 6 * 3 * 2


def test_a_run_ended_while_it_loads_leaves_nothing(
    tiny_model: Path, tmp_path: Path, quiet: tuple[str, ...]
) -> None:
    path = tmp_path / "run.duckdb"
    exit_code, shown = interrupted(
        signal.SIGTERM, lambda shown: "loading" in shown,
        "tune", tiny_model, "--quick", "--output", path, *quiet,
    )  # fmt: skip
    assert exit_code == 130
    assert "interrupted; nothing is kept" in shown
    assert "Traceback" not in shown
    assert list(tmp_path.glob("run*")) == []
