"""A server on this machine that plays an engine from bodies that were captured."""

import json
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

CASES = Path(__file__).parents[1] / "cases"
HTML = "<!DOCTYPE html><html><body>Welcome</body></html>"
CHAT, COMPLETIONS = "/v1/chat/completions", "/v1/completions"

_BODIES: dict[str, Any] = {
    row["case"]: row["body"]
    for row in map(json.loads, (CASES / "vllm" / "bodies.jsonl").read_text("utf-8").splitlines())
}
_OTHERS: dict[tuple[str, str], Any] = {
    (row["adapter"], row["case"]): row["body"]
    for row in map(json.loads, (CASES / "other-engines.jsonl").read_text("utf-8").splitlines())
}
DETAILED = _BODIES["copy-verbatim.t0.n1"]
DETAILED_COMPLETION = _BODIES["edge.completions"]
NOTHING_DRAFTED = _BODIES["edge.max_tokens-1"]
SWITCHED_OFF = _BODIES["baseline.code-fib.t0.n1"]
DETAILED_STREAM = (CASES / "vllm" / "sse-continuous-usage.sse").read_text("utf-8")
NO_DRAFTER_PAGE, BEFORE, AFTER = (
    (CASES / "prometheus" / f"vllm-0.32-{name}.prom").read_text("utf-8")
    for name in ("no-speculation", "ngram-before", "ngram-after")
)
NO_STATS_PAGE = "".join(NO_DRAFTER_PAGE.splitlines(keepends=True)[:3])
SGLANG_PAGE = (
    "# TYPE sglang:spec_accept_length gauge\n"
    'sglang:spec_accept_length{model_name="m"} 2.6\n'
    "# TYPE sglang:num_running_reqs gauge\nsglang:num_running_reqs 0\n"
)


def at_summary(body: Any) -> Any:
    """The body that the same server sends with `summary`."""
    told = body["metrics"]["speculative_decoding"]
    lists = {"per_step_accepted": None, "per_step_drafted": None}
    return {**body, "metrics": {**body["metrics"], "speculative_decoding": {**told, **lists}}}


def other(adapter: str, case: str) -> Any:
    """A body of another engine."""
    return _OTHERS[adapter, case]


PER_CHOICE = other("vllm-choice", "sparse")


def as_stream(body: Mapping[str, Any]) -> str:
    """A body as a stream of one event."""
    choices = [
        {**{k: v for k, v in one.items() if k != "message"}, "delta": one.get("message", {})}
        for one in body["choices"]
    ]
    kind = "chat.completion.chunk" if body["object"] == "chat.completion" else body["object"]
    event = json.dumps({**body, "object": kind, "choices": choices})
    return f"data: {event}\n\ndata: [DONE]\n\n"


@dataclass
class Played:
    """What the server does; the defaults are a vLLM 0.32 with a drafter and detailed figures.

    A page that is None is not there. `metrics` are served one after the other, the last again and
    again. `refused` are fields that it answers with 400. `asked` is what it was asked.
    """

    version: str | None = "0.32.0"
    owner: str | None = "vllm"
    metrics: tuple[str, ...] = (BEFORE, AFTER)
    body: Any = field(default_factory=lambda: DETAILED)
    stream: str | None = DETAILED_STREAM
    paths: tuple[str, ...] = (CHAT, COMPLETIONS)
    refused: frozenset[str] = frozenset()
    key: str | None = None
    guards_metrics: bool = False
    web_page: bool = False
    hangs_on: tuple[str, ...] = ()
    asked: list[tuple[str, dict[str, Any]]] = field(default_factory=list)
    scrapes: int = 0

    def page(self, path: str, *, has_key: bool) -> tuple[int, str]:
        """The answer to GET."""
        if self.web_page:
            return 200, HTML
        if self.key and not has_key and (path != "/metrics" or self.guards_metrics):
            return 401, self.no_key()
        if path == "/version" and self.version:
            return 200, json.dumps({"version": self.version})
        if path == "/v1/models" and self.owner:
            return 200, json.dumps({"data": [{"id": "a-model", "owned_by": self.owner}]})
        if path == "/metrics" and self.metrics:
            self.scrapes += 1
            return 200, self.metrics[min(self.scrapes, len(self.metrics)) - 1]
        return 404, '{"detail":"Not Found"}'

    def answer(self, path: str, request: dict[str, Any], *, has_key: bool) -> tuple[int, str]:
        """The answer to POST."""
        self.asked.append((path, request))
        if self.web_page:
            return 200, HTML
        if self.key and not has_key:
            return 401, self.no_key()
        if path not in self.paths:
            return 404, '{"detail":"Not Found"}'
        if unknown := self.refused & request.keys():
            message = f"Unrecognized request argument supplied: {', '.join(unknown)}"
            return 400, json.dumps({"error": {"message": message, "code": 400}})
        if request.get("stream"):
            return 200, as_stream(self.body) if self.stream is None else self.stream
        return 200, json.dumps(self.body)

    def no_key(self) -> str:
        """What some servers say, who repeat the key that they refuse."""
        return json.dumps({"error": {"message": "Incorrect API key provided: sk-wrong-key"}})


class _Handler(BaseHTTPRequestHandler):
    def __init__(self, played: Played, over: threading.Event, *arguments: Any) -> None:
        self._played = played
        self._over = over
        super().__init__(*arguments)

    def do_GET(self) -> None:
        if not self._hangs():
            self._send(*self._played.page(self.path, has_key=self._has_key()))

    def do_POST(self) -> None:
        request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        if not self._hangs():
            self._send(*self._played.answer(self.path, request, has_key=self._has_key()))

    def _has_key(self) -> bool:
        return self.headers.get("Authorization") == f"Bearer {self._played.key}"

    def _hangs(self) -> bool:
        return self.path in self._played.hangs_on and self._over.wait(30)

    def _send(self, status: int, text: str) -> None:
        content = text.encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, format: str, *arguments: object) -> None:  # noqa: A002
        """Says nothing."""


@contextmanager
def served(played: Played) -> Iterator[str]:
    """The address at which it is played."""
    over = threading.Event()
    with ThreadingHTTPServer(("127.0.0.1", 0), partial(_Handler, played, over)) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_address[1]}"
        finally:
            over.set()
            server.shutdown()
            thread.join()
