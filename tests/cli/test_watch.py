"""`outrider watch` on a server and on a stream, as a user has it."""

import io
import json
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from tests.cli.running import Run
from tests.cli.script import SCRIPT

CASES = Path(__file__).parents[1] / "records" / "cases"
LOG = CASES / "logs" / "vllm-0.32-ngram.log"
ANSWERS = CASES / "two-kinds.jsonl"

GOOD, BROKEN, LOOPING = (40, 25, 20, 15), (97, 2, 1, 0), (1, 1, 1, 97)


@dataclass
class Server:
    """A server that does the work of one window between any two scrapes of it."""

    work: list[tuple[int, ...]]
    down_at: frozenset[int] = frozenset()
    scrapes: int = 0
    done: list[int] = field(default_factory=lambda: [0] * 4)

    def page(self) -> str | None:
        if 0 < self.scrapes <= len(self.work):
            for length, steps in enumerate(self.work[self.scrapes - 1]):
                self.done[length] += steps
        self.scrapes += 1
        if self.scrapes - 1 in self.down_at:
            return None
        steps = sum(self.done)
        reached = [sum(self.done[position:]) for position in (1, 2, 3)]
        labels, name = 'engine="0",model_name="m"', "vllm:spec_decode_num_"
        lines = [
            f"{name}drafts_total{{{labels}}} {steps}",
            f"{name}draft_tokens_total{{{labels}}} {3 * steps}",
            f"{name}accepted_tokens_total{{{labels}}} {sum(reached)}",
            *(
                f'{name}accepted_tokens_per_pos_total{{{labels},position="{place}"}} {count}'
                for place, count in enumerate(reached)
            ),
        ]
        return "\n".join(lines) + "\n"


Serve = Callable[[Server], str]


@pytest.fixture
def serve() -> Iterator[Serve]:
    """Serves the counters of a server, and gives its address."""
    running: list[ThreadingHTTPServer] = []

    def start(server: Server) -> str:
        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                page = server.page() if self.path == "/metrics" else None
                self.send_response(503 if page is None else 200)
                self.end_headers()
                self.wfile.write((page or "").encode())

            def log_message(self, *arguments: object) -> None:
                pass

        http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=http.serve_forever, daemon=True).start()
        running.append(http)
        return f"http://127.0.0.1:{http.server_address[1]}"

    yield start
    for http in running:
        http.shutdown()
        http.server_close()


@pytest.fixture
def until_done(monkeypatch: pytest.MonkeyPatch) -> Callable[[Server], None]:
    """Has Ctrl-C come once a server has done all its work."""

    def interrupt_after(server: Server) -> None:
        def sleep(_: float) -> None:
            if server.scrapes > len(server.work):
                raise KeyboardInterrupt

        monkeypatch.setattr("outrider.cli.watch.time.sleep", sleep)

    return interrupt_after


def objects(text: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in text.splitlines()]


def kinds(found: Sequence[dict[str, Any]], kind: str) -> list[dict[str, Any]]:
    return [each for each in found if each["type"] == kind]


def test_a_server_that_breaks_and_recovers_raises_an_alarm_and_clears_it(
    run: Run, serve: Serve, until_done: Callable[[Server], None], tmp_path: Path
) -> None:
    learned = [GOOD, (38, 26, 20, 16), (43, 24, 19, 14), (41, 24, 20, 15), GOOD]
    then = [GOOD, BROKEN, BROKEN, BROKEN, GOOD, GOOD, LOOPING, LOOPING]
    server = Server([tuple(10 * steps for steps in work) for work in (*learned, *then)])
    until_done(server)
    path = tmp_path / "watch.jsonl"
    result = run(
        "watch", serve(server), "--every", "1ms", "--learn", 5, "--output", path, "--format", "json"
    )
    assert result.exit_code == 130
    found = objects(result.out)
    assert objects(path.read_text()) == found
    assert [(each["event"], each["side"]) for each in kinds(found, "alarm")] == [
        ("raised", "low"), ("cleared", "low"), ("raised", "high"),
    ]  # fmt: skip
    assert [each["state"] for each in kinds(found, "window")[:13]] == [
        *["learning"] * 5, "inside", "low", "low", "low", "inside", "inside", "high", "high",
    ]  # fmt: skip
    [summary] = kinds(found, "summary")
    assert summary["segments"][0]["steps"] == 13_000


def test_text_says_what_is_watched_and_what_to_check(run: Run, serve: Serve) -> None:
    url = serve(Server([GOOD, BROKEN, BROKEN]))
    result = run("watch", url, "--every", "1ms", "--band", "1.3,", "--fail-fast")
    assert result.exit_code == 1
    first, _, *_, summary, alarm = result.out.splitlines()
    assert first.startswith(f"Watching {url}, a window every 0.001 s; M is held against ≥ 1.30")
    assert "ALARM low: K = 3: M = 1.04, below 1.30, 2 windows in a row." in result.out
    assert "1 alarm" in summary
    assert "still on" in alarm
    assert result.err == ""


def test_a_watch_without_an_alarm_ends_with_0(run: Run, serve: Serve) -> None:
    url = serve(Server([GOOD] * 3))
    result = run("watch", url, "--every", "10ms", "--for", "50ms", "--band", "1.3,3")
    assert result.exit_code == 0
    assert "0 alarms" in result.out


def test_a_server_that_goes_away_is_told_once_and_waited_for(
    run: Run, serve: Serve, until_done: Callable[[Server], None]
) -> None:
    server = Server([GOOD] * 6, down_at=frozenset((2, 3)))
    until_done(server)
    result = run("watch", serve(server), "--every", "1ms", "--band", "1.3,3")
    assert result.exit_code == 130
    assert result.out.count("503") == 1
    assert "reachable again" in result.out
    assert "over 600 steps" in result.out


def test_a_server_that_is_not_there_is_one_line(run: Run, serve: Serve) -> None:
    url = serve(Server([], down_at=frozenset((0,))))
    result = run("watch", url)
    assert (result.exit_code, result.out) == (2, "")
    assert result.err.count("\n") == 1


def test_a_baseline_is_held_against_the_server(run: Run, serve: Serve, tmp_path: Path) -> None:
    path = tmp_path / "baseline.json"
    assert run("report", LOG, "--format", "json", "--output", path).exit_code == 0
    busy = tuple(10 * steps for steps in LOOPING)
    result = run(
        "watch", serve(Server([busy, busy])), "--every", "1ms", "--baseline", path, "--fail-fast"
    )
    assert result.exit_code == 1
    assert "ALARM high" in result.out


def test_a_log_is_watched_as_it_is_piped_in(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(LOG.read_bytes())))
    result = run("watch", "-", "--band", "1.3,3", "--format", "json")
    assert result.exit_code == 0
    [summary] = kinds(objects(result.out), "summary")
    [segment] = summary["segments"]
    assert (segment["segment"]["scope"], segment["steps"]) == ("log", 3972)


def test_answers_are_watched_by_kind(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(ANSWERS.read_bytes())))
    result = run("watch", "-", "--by", "kind", "--band", "1.5,", "--confirm", 1)
    assert result.exit_code == 1
    assert "ALARM low: kind write, K = 3" in result.out
    assert "kind copy, K = 3" in result.out


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ([LOG], "outrider watch -"),
        (["localhost:8000"], "write http://localhost:8000"),
        (["ftp://server"], "write for instance http://localhost:8000"),
        ([""], "write for instance http://localhost:8000"),
        (["-", "--band", "2,1"], "--band 2,1"),
        (["-", "--band", ","], "--band ,"),
        (["-", "--band", "low,"], "--band low,"),
        (["-", "--band", "0.5,2"], "--band 0.5,2"),
        (["-", "--band", "1.2,", "--baseline", "x"], "--band with --baseline"),
        (["-", "--baseline", "nowhere.json"], "no such file"),
        (["-", "--baseline", "."], "is a directory"),
        (["-", "--learn", "2"], "--learn 2"),
        (["-", "--confirm", "0"], "--confirm 0"),
        (["-", "--min-steps", "0"], "--min-steps 0"),
        (["-", "--every", "often"], "--every often"),
        (["-", "--format", "xml"], "--format xml"),
        (["-", "--output", "/nowhere/at/all"], "cannot be written"),
    ],
)
def test_what_cannot_be_asked_is_one_line(arguments: list[object], told: str, run: Run) -> None:
    result = run("watch", *arguments)
    assert (result.exit_code, result.out) == (2, "")
    assert told in result.err
    assert result.err.count("\n") == 1


@pytest.mark.parametrize(
    ("content", "told"),
    [(b"", "nothing usable"), (b"what is this\n", "nothing usable")],
)
def test_a_stream_that_tells_nothing_is_not_good_news(
    content: bytes, told: str, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(content)))
    result = run("watch", "-")
    assert result.exit_code == 3
    assert told in result.err


def test_a_key_that_no_answer_has_is_refused(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(ANSWERS.read_bytes())))
    result = run("watch", "-", "--by", "kin")
    assert result.exit_code == 2
    assert "use --by kind" in result.err


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGHUP])
def test_ctrl_c_keeps_what_came_and_tells_it(number: signal.Signals, tmp_path: Path) -> None:
    """In another process, with a pipe that stays open."""
    path = tmp_path / "watch.jsonl"
    command = [*SCRIPT, "watch", "-", "--every", "100ms"]
    with subprocess.Popen(
        [*command, "--output", str(path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as child:
        assert child.stdin is not None
        child.stdin.write(LOG.read_bytes())
        child.stdin.flush()
        while child.poll() is None and '"steps": 3972' not in (
            path.read_text() if path.exists() else ""
        ):
            time.sleep(0.05)
        child.send_signal(number)
        assert child.stdout is not None
        assert child.stderr is not None
        out, err = child.stdout.read().decode(), child.stderr.read().decode()
    assert child.returncode == 130
    assert err == ""
    assert "over 3,972 steps" in out
    assert objects(path.read_text())[-1]["type"] == "summary"
