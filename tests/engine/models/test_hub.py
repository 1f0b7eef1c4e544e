import hashlib
import json
import threading
from collections.abc import Callable, Iterator
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import ClassVar

import pytest

from outrider.engine.models.catalogue import wanted_model
from outrider.engine.models.fetching import HUB_FOLDER, Report, Source, SourceError
from outrider.engine.models.hub import fetch_from_hub
from outrider.engine.models.model_folder import MANIFEST_FILE
from outrider.engine.models.store import locate_model
from outrider.errors import CorruptFile

HUB_ID = "someone/tiny"
REVISION = "0123456789abcdef0123456789abcdef01234567"
REPOSITORY = {
    "config.json": b'{"model_type": "llama"}',
    "model.safetensors": b"weights, in the hub's large-file store",
    "tokenizer.json": b"{}",
    "pytorch_model.bin": b"a pickle",
    "modeling_tiny.py": b"raise SystemExit",
    "models/old.safetensors": b"another copy",
}


def sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def ignore(line: str) -> None:
    pass


class FakeHub(BaseHTTPRequestHandler):
    """Speaks as much of the hub's protocol as one repository of a few files needs."""

    served: ClassVar = REPOSITORY
    listed: ClassVar = REPOSITORY

    def do_HEAD(self) -> None:
        self.answer(body=False)

    def do_GET(self) -> None:
        self.answer(body=True)

    def answer(self, *, body: bool) -> None:
        path = self.path.partition("?")[0]
        if path == f"/api/models/{HUB_ID}":
            self.send(json.dumps(self.listing()).encode(), {}, body=body)
            return
        name = path.removeprefix(f"/{HUB_ID}/resolve/{REVISION}/")
        if name not in self.served:
            self.send_error(404)
            return
        content = self.served[name]
        self.send(content, {"X-Repo-Commit": REVISION, "ETag": sha256(content)}, body=body)

    def listing(self) -> dict[str, object]:
        files = []
        for name, content in self.listed.items():
            large = {"sha256": sha256(content), "size": len(content), "pointerSize": 1}
            lfs = large if name.endswith((".safetensors", ".bin")) else None
            files.append({"rfilename": name, "size": len(content), "blobId": "0", "lfs": lfs})
        return {"id": HUB_ID, "sha": REVISION, "siblings": files}

    def send(self, content: bytes, headers: dict[str, str], *, body: bool) -> None:
        self.send_response(200)
        for key, value in {**headers, "Content-Length": str(len(content))}.items():
            self.send_header(key, value)
        self.end_headers()
        if body:
            self.wfile.write(content)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002
        pass


class AlteredHub(FakeHub):
    """Serves weights that are not the listed ones, though as long."""

    served: ClassVar = {**REPOSITORY, "model.safetensors": REPOSITORY["model.safetensors"].upper()}


class WeightlessHub(FakeHub):
    """Has pickled weights only."""

    listed: ClassVar = {name: REPOSITORY[name] for name in ("config.json", "pytorch_model.bin")}


class ShorterHub(FakeHub):
    """Serves a config that is shorter than the listed one."""

    served: ClassVar = {**REPOSITORY, "config.json": b"{}"}


class SilentHub(FakeHub):
    """Takes the question and never answers it, as a black hole does."""

    released: ClassVar = threading.Event()

    def answer(self, *, body: bool) -> None:
        self.released.wait()


class LockedHub(FakeHub):
    """Lets nobody in, and says with what each asked."""

    keys: ClassVar[list[str]] = []

    def answer(self, *, body: bool) -> None:
        del body
        self.keys.append(self.headers.get("Authorization", ""))
        self.send_error(403, f"not with {self.keys[-1]}")


Fetch = Callable[..., Path]


@pytest.fixture
def fetch_from() -> Iterator[Callable[[type[FakeHub]], Fetch]]:
    servers = []

    def start(handler: type[FakeHub]) -> Fetch:
        server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
        threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        servers.append(server)
        return partial(fetch_from_hub, endpoint=f"http://127.0.0.1:{server.server_port}")

    yield start
    for server in servers:
        server.shutdown()
        server.server_close()


StartHub = Callable[[type[FakeHub]], Fetch]


def fetch_tiny(fetch: Fetch, scratch: Path, report: Report = ignore) -> Path:
    return fetch(wanted_model(HUB_ID, {}), scratch, report)


def test_a_model_is_fetched_without_pickles_or_code(tmp_path: Path, fetch_from: StartHub) -> None:
    lines: list[str] = []
    folder = fetch_tiny(fetch_from(FakeHub), tmp_path, lines.append)
    wanted = ("config.json", "model.safetensors", "tokenizer.json")
    assert folder == tmp_path / HUB_FOLDER
    assert {file.name for file in folder.iterdir()} == {*wanted, MANIFEST_FILE}
    assert {name: (folder / name).read_bytes() for name in wanted} == {
        name: REPOSITORY[name] for name in wanted
    }
    assert lines[0] == f"fetching {HUB_ID} from the Hugging Face Hub ({HUB_ID})"
    assert "fetching model.safetensors (0.0 MB)" in lines


def test_the_manifest_names_the_revision_and_the_hash_of_every_file(
    tmp_path: Path, fetch_from: StartHub
) -> None:
    folder = fetch_tiny(fetch_from(FakeHub), tmp_path)
    manifest = json.loads((folder / MANIFEST_FILE).read_text())
    assert (manifest["hub_id"], manifest["revision"]) == (HUB_ID, REVISION)
    assert {file["name"]: file["sha256"] for file in manifest["files"]} == {
        name: sha256(REPOSITORY[name])
        for name in ("config.json", "model.safetensors", "tokenizer.json")
    }


def test_the_store_keeps_what_the_hub_delivers_and_does_not_fetch_it_again(
    tmp_path: Path, fetch_from: StartHub
) -> None:
    sources = (Source("hub", fetch_from(FakeHub)),)
    files = locate_model(HUB_ID, cache_dir=tmp_path, report=ignore, sources=sources)
    listing = f"{sha256(REPOSITORY['model.safetensors'])}  model.safetensors\n"
    assert (files.source, files.hub_id) == ("hub", HUB_ID)
    assert files.sha256 == sha256(listing.encode())
    again = locate_model(HUB_ID, cache_dir=tmp_path, report=ignore, sources=())
    assert (again.path, again.sha256, again.source) == (files.path, files.sha256, "hub")


def test_weights_that_differ_from_the_hubs_record_are_refused(
    tmp_path: Path, fetch_from: StartHub
) -> None:
    with pytest.raises(CorruptFile) as caught:
        fetch_tiny(fetch_from(AlteredHub), tmp_path)
    assert sha256(AlteredHub.served["model.safetensors"]) in caught.value.seen
    assert sha256(REPOSITORY["model.safetensors"]) in caught.value.expected


def test_a_file_that_is_shorter_than_listed_fails_the_source(
    tmp_path: Path, fetch_from: StartHub
) -> None:
    with pytest.raises(SourceError, match=r"config\.json"):
        fetch_tiny(fetch_from(ShorterHub), tmp_path)


def test_a_repository_without_safetensors_is_named_as_the_reason(
    tmp_path: Path, fetch_from: StartHub
) -> None:
    with pytest.raises(SourceError, match=r"tiny has no \*\.safetensors and no tokenizer"):
        fetch_tiny(fetch_from(WeightlessHub), tmp_path)


def test_an_absent_repository_is_named_as_the_reason(tmp_path: Path, fetch_from: StartHub) -> None:
    with pytest.raises(SourceError, match="404"):
        fetch_from(FakeHub)(wanted_model("someone/else", {}), tmp_path, ignore)


def test_a_silent_hub_is_given_up(tmp_path: Path, fetch_from: StartHub) -> None:
    try:
        with pytest.raises(SourceError, match=r"no answer within 0\.05 s"):
            fetch_tiny(partial(fetch_from(SilentHub), answer_within_s=0.05), tmp_path)
    finally:
        SilentHub.released.set()


def test_the_environments_token_goes_to_the_hub_and_is_told_nobody_else(
    tmp_path: Path, fetch_from: StartHub, monkeypatch: pytest.MonkeyPatch
) -> None:
    token = "hf_notToBeToldToAnyone"  # noqa: S105  of nobody
    monkeypatch.setenv("HF_TOKEN", token)
    lines: list[str] = []
    with pytest.raises(SourceError) as failure:
        fetch_tiny(fetch_from(LockedHub), tmp_path, lines.append)
    assert f"Bearer {token}" in LockedHub.keys
    assert token not in str(failure.value) + "".join(lines)
    fetch_tiny(fetch_from(FakeHub), tmp_path, lines.append)
    written = b"".join(file.read_bytes() for file in tmp_path.rglob("*") if file.is_file())
    assert token.encode() not in written
    assert token not in "".join(lines)
