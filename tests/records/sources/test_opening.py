"""Whatever names bytes is opened, compressed or not, and what cannot be is told."""

import gzip
import io
import os
import socket
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import cast

import httpx2
import pytest

from outrider.errors import UnreadableSource
from outrider.records.reading import BadRecord, Place
from outrider.records.sources.document import JsonDocument
from outrider.records.sources.framing import framed
from outrider.records.sources.opening import OpenSource, open_sources
from outrider.records.sources.sse import Framed

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

BODY = b'{"a": 1}\n' * 40_000
COMPRESSED = {
    "plain": BODY,
    "gzip": gzip.compress(BODY),
    "two gzip members": gzip.compress(BODY[:9000]) + gzip.compress(BODY[9000:]),
    "zstd": zstd.compress(BODY),
    "two zstd frames": zstd.compress(BODY[:9000]) + zstd.compress(BODY[9000:]),
    "zstd after a skippable frame": b"\x50\x2a\x4d\x18\x04\0\0\0abcd" + zstd.compress(BODY),
    "gzip of zstd": gzip.compress(zstd.compress(BODY)),
}


class Server(ThreadingHTTPServer):
    answers: dict[str, tuple[int, dict[str, str], bytes]]


class Handler(BaseHTTPRequestHandler):
    server: Server

    def do_GET(self) -> None:
        status, headers, body = self.server.answers[self.path]
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002
        pass


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with Server(("127.0.0.1", 0), Handler) as running:
        running.answers = {
            "/plain": (200, {}, BODY),
            "/encoded": (200, {"Content-Encoding": "gzip"}, COMPRESSED["gzip"]),
            "/file.zst": (200, {}, COMPRESSED["zstd"]),
            "/moved": (302, {"Location": "/plain"}, b""),
            "/missing": (404, {}, b"not here"),
            "/short": (200, {"Content-Length": str(2 * len(BODY))}, BODY),
        }
        thread = threading.Thread(target=running.serve_forever)
        thread.start()
        yield running
        running.shutdown()
        thread.join()


def address(server: Server, path: str) -> str:
    return f"http://127.0.0.1:{server.server_port}{path}"


def contents(name: str, http: httpx2.Client, stdin: bytes = b"") -> dict[str, bytes | str]:
    return {
        (one.name if isinstance(one, OpenSource) else one[0].source): (
            one.stream.read() if isinstance(one, OpenSource) else one[1].reason
        )
        for one in open_sources(name, stdin=io.BytesIO(stdin), http=http)
    }


def documents(name: str, http: httpx2.Client) -> list[Framed]:
    found = [
        one
        for source in open_sources(name, stdin=io.BytesIO(), http=http)
        if isinstance(source, OpenSource)
        for one in framed(source)
    ]
    return cast("list[Framed]", found)


@pytest.mark.parametrize("data", COMPRESSED.values(), ids=COMPRESSED)
def test_compression_is_seen_in_the_bytes(data: bytes, tmp_path: Path, http: httpx2.Client) -> None:
    path = tmp_path / "any-name.txt"
    path.write_bytes(data)
    assert contents(str(path), http) == {str(path): BODY}
    assert contents("-", http, data) == {"-": BODY}


@pytest.mark.parametrize("path", ["/plain", "/encoded", "/file.zst", "/moved"])
def test_an_address_is_fetched(path: str, server: Server, http: httpx2.Client) -> None:
    assert contents(address(server, path), http) == {address(server, path): BODY}


def test_an_address_without_an_answer_is_refused(server: Server, http: httpx2.Client) -> None:
    with pytest.raises(UnreadableSource, match="answers with status 404; expected status 200"):
        contents(address(server, "/missing"), http)
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        with pytest.raises(UnreadableSource, match="cannot be fetched"):
            contents(f"http://127.0.0.1:{unused.getsockname()[1]}/metrics", http)
    with pytest.raises(UnreadableSource, match="cannot be fetched"):
        contents("http://[::bad", http)


def test_an_answer_that_breaks_off_is_read_so_far(server: Server, http: httpx2.Client) -> None:
    found = documents(address(server, "/short"), http)
    assert len(found) == 40_001
    assert isinstance(found[-1], tuple)
    assert found[-1][1].reason.startswith("it breaks off: ")


def test_a_password_is_not_shown(server: Server, http: httpx2.Client) -> None:
    secret = address(server, "/plain").replace("://", "://me:secret@")
    assert [*contents(secret, http)] == [address(server, "/plain")]


@pytest.mark.parametrize("kind", ["gzip", "zstd"])
def test_a_broken_compressed_stream_is_read_so_far(
    kind: str, tmp_path: Path, http: httpx2.Client
) -> None:
    noise = b"".join(b'{"a": "%s"}\n' % os.urandom(40).hex().encode() for _ in range(20_000))
    packed = gzip.compress(noise) if kind == "gzip" else zstd.compress(noise)
    path = tmp_path / "log"
    for data in (packed[: len(packed) // 2], packed + b"garbage", packed[:-4]):
        path.write_bytes(data)
        found = documents(str(path), http)
        assert isinstance(found[-1], tuple)
        assert found[-1][1].reason.startswith("it breaks off: ")
        assert sum(isinstance(one, JsonDocument) for one in found) > 5_000


def test_a_compressed_stream_broken_from_the_start_is_one_bad_record(
    tmp_path: Path, http: httpx2.Client
) -> None:
    for magic in (b"\x1f\x8b\x08", b"\x28\xb5\x2f\xfd"):
        path = tmp_path / "log"
        path.write_bytes(magic + b"\xff" * 50)
        (found,) = documents(str(path), http)
        assert isinstance(found, tuple)


def test_only_the_file_of_the_very_bytes_is_named(tmp_path: Path, http: httpx2.Client) -> None:
    paths = []
    for name, data in (("a", BODY), ("b", COMPRESSED["gzip"])):
        (tmp_path / name).write_bytes(data)
        (source,) = open_sources(str(tmp_path / name), stdin=io.BytesIO(), http=http)
        assert isinstance(source, OpenSource)
        paths.append(source.path)
    assert paths == [tmp_path / "a", None]


def test_a_folder_is_walked_in_order(tmp_path: Path, http: httpx2.Client) -> None:
    for name in ("b.json", "a/2", "a/1", "a/.hidden", ".git/config", "c"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(name)
    (tmp_path / "a" / "up").symlink_to(tmp_path)
    os.mkfifo(tmp_path / "pipe")
    found = contents(str(tmp_path), http)
    assert [*found] == [str(tmp_path / name) for name in ("a/1", "a/2", "b.json", "c")]
    assert found[str(tmp_path / "a/1")] == b"a/1"


def test_what_cannot_be_opened_in_a_folder_is_listed(tmp_path: Path, http: httpx2.Client) -> None:
    (tmp_path / "good").write_text("x")
    (tmp_path / "lost").symlink_to(tmp_path / "nowhere")
    assert contents(str(tmp_path), http) == {
        str(tmp_path / "good"): b"x",
        str(tmp_path / "lost"): "cannot be opened (No such file or directory)",
    }


def test_an_empty_folder_is_told(tmp_path: Path, http: httpx2.Client) -> None:
    assert [*open_sources(str(tmp_path), stdin=io.BytesIO(), http=http)] == [
        (Place(str(tmp_path)), BadRecord("the folder holds no file"))
    ]


@pytest.mark.parametrize("text", ["[39, 1, 0, 3]", ' {"histogram": [1], "drafted": 3}'])
def test_numbers_typed_by_hand_are_a_source(text: str, http: httpx2.Client) -> None:
    assert contents(text, http) == {text.strip(): text.encode()}
    long = "[" + "1, " * 5000 + "1]"
    ((name, data),) = contents(long, http).items()
    assert len(name) == 60
    assert data == long.encode()


def test_a_file_named_like_numbers_is_a_file(
    tmp_path: Path, http: httpx2.Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("[1]").write_text("inside")
    assert contents("[1]", http) == {"[1]": b"inside"}


@pytest.mark.parametrize("name", ["nowhere.json", "ftp://host/file", "", "\udcff", "a\0b"])
def test_a_name_of_nothing_is_refused(
    name: str, tmp_path: Path, http: httpx2.Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UnreadableSource, match="does not exist; expected a file, a folder"):
        contents(name, http)


def test_names_that_are_no_unicode_can_be_shown(tmp_path: Path, http: httpx2.Client) -> None:
    path = os.fsdecode(os.fsencode(tmp_path) + b"/a\xff")
    Path(path).write_text("x")
    ((name, data),) = contents(path, http).items()
    assert name.encode()
    assert data == b"x"
