"""`outrider report` on the address of a server."""

import json
import threading
from collections.abc import Iterator
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from tests.cli.running import Result, Run

CASES = Path(__file__).parents[1] / "records" / "cases"
BEFORE = CASES / "prometheus" / "vllm-0.32-ngram-before.prom"
AFTER = CASES / "prometheus" / "vllm-0.32-ngram-after.prom"


def as_json(result: Result) -> dict[str, Any]:
    assert result.exit_code == 0, result.err
    content: dict[str, Any] = json.loads(result.out)
    return content


class Metrics(BaseHTTPRequestHandler):
    """Serves the scrape before, and from then on the one after."""

    def __init__(self, pages: Iterator[bytes], *arguments: Any) -> None:
        self._pages = pages
        super().__init__(*arguments)

    def do_GET(self) -> None:
        assert self.path == "/metrics"
        page = next(self._pages)
        self.send_response(200)
        self.send_header("Content-Length", str(len(page)))
        self.end_headers()
        self.wfile.write(page)

    def log_message(self, format: str, *arguments: object) -> None:  # noqa: A002
        """Says nothing."""


@pytest.fixture
def server() -> Iterator[str]:
    pages = iter([BEFORE.read_bytes(), AFTER.read_bytes()])
    with ThreadingHTTPServer(("127.0.0.1", 0), partial(Metrics, pages)) as served:
        thread = threading.Thread(target=served.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{served.server_address[1]}/metrics"
        served.shutdown()
        thread.join()


def test_a_url_is_scraped_twice_with_for(run: Run, server: str) -> None:
    content = as_json(run("report", server, "--for", "10ms", "--format", "json"))
    assert content["segments"][0]["steps"] == 3183


@pytest.mark.parametrize("page", ["/metrics", "", "/v1"])
def test_a_url_is_a_source(page: str, run: Run, server: str) -> None:
    """A server alone is read at /metrics; its password is not shown."""
    url = server.removesuffix("/metrics") + page
    content = as_json(run("report", url.replace("//", "//me:secret@"), "--format", "json"))
    assert content["segments"][0]["steps"] == 3325 - 3183
    assert content["sources"] == [url]


def test_a_server_without_its_scheme_is_told_how_to_write_it(run: Run) -> None:
    assert "write http://localhost:8000" in run("report", "localhost:8000").err


def test_a_password_is_in_no_message(run: Run) -> None:
    url = "http://me:secret@127.0.0.1:9"
    for arguments in (("report", url, "--for", "10ms"), ("watch", url)):
        result = run(*arguments)
        assert result.exit_code == 2
        assert "127.0.0.1:9/metrics" in result.err
        assert "secret" not in result.out + result.err
