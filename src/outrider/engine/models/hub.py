"""Fetching a model from the Hugging Face Hub."""

import shutil
import threading
from collections.abc import Callable
from concurrent.futures import Future
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

from huggingface_hub import HfApi
from huggingface_hub.errors import RepositoryNotFoundError
from huggingface_hub.utils import disable_progress_bars
from huggingface_hub.utils import logging as hub_logging

from outrider.engine.models.catalogue import Wanted
from outrider.engine.models.checksum import check_sha256, file_sha256
from outrider.engine.models.fetching import HUB_FOLDER, Report, SourceError
from outrider.engine.models.model_folder import MANIFEST_FILE, FileRecord, Manifest, missing_parts

HUB_FILES = (
    "model*.safetensors",
    "model.safetensors.index.json",
    "config.json",
    "generation_config.json",
    "tokenizer*.json",
    "tokenizer.model",
    "special_tokens_map.json",
    "added_tokens.json",
    "chat_template.*",
)
"""What is taken from a hub repository: no pickled weights and no code."""


def fetch_from_hub(
    wanted: Wanted,
    scratch: Path,
    report: Report,
    *,
    endpoint: str | None = None,
    answer_within_s: float = 5.0,
) -> Path:
    """Downloads a Hugging Face repository's model files and checks each against the hub's record.

    The hub has to answer the first question within `answer_within_s`; `endpoint` is its address,
    None for the one that huggingface_hub is set to.
    """
    report(f"fetching {wanted.name} from the Hugging Face Hub ({wanted.hub_id})")
    disable_progress_bars()
    hub_logging.set_verbosity_error()
    hub = HfApi(endpoint=endpoint)
    info = _answer(answer_within_s, lambda: hub.model_info(wanted.hub_id, files_metadata=True))
    chosen = [
        file
        for file in info.siblings or ()
        if any(fnmatch(file.rfilename, pattern) for pattern in HUB_FILES)
        and "/" not in file.rfilename
    ]
    if missing := missing_parts(file.rfilename for file in chosen):
        raise SourceError(f"{wanted.hub_id} has no {' and no '.join(missing)}")
    folder = scratch / HUB_FOLDER
    records = []
    # One by one in this thread, so that Ctrl-C ends it; the client retries each a few times only.
    for file in chosen:
        report(f"fetching {file.rfilename} ({(file.size or 0) / 1e6:.1f} MB)")
        try:
            hub.hf_hub_download(
                wanted.hub_id, file.rfilename, revision=info.sha, local_dir=folder, etag_timeout=5
            )
        except Exception as error:
            raise SourceError(_first_line(error)) from error
        records.append(_checked_download(folder / file.rfilename, file))
    shutil.rmtree(folder / ".cache", ignore_errors=True)
    manifest = Manifest(hub_id=wanted.hub_id, revision=info.sha, files=records)
    (folder / MANIFEST_FILE).write_text(manifest.model_dump_json(indent=2), encoding="utf-8")
    return folder


def _checked_download(path: Path, listed: Any) -> FileRecord:
    """Holds a download to the hub's listing, which has a SHA-256 for every large file."""
    size_bytes = path.stat().st_size
    if size_bytes != listed.size:
        raise SourceError(f"{path.name} has {size_bytes} of {listed.size} bytes")
    if listed.lfs is None:
        return FileRecord(name=path.name, size_bytes=size_bytes, sha256=file_sha256(path))
    digest = check_sha256(path, listed.lfs.sha256, "run again, or give a path")
    return FileRecord(name=path.name, size_bytes=size_bytes, sha256=digest)


def _answer(within_s: float, question: Callable[[], Any]) -> Any:
    # A name look-up that nobody answers cannot be interrupted, only left behind in a daemon thread.
    answer: Future[Any] = Future()

    def ask() -> None:
        try:
            answer.set_result(question())
        except Exception as error:  # noqa: BLE001  raised again where the answer is awaited
            answer.set_exception(error)

    threading.Thread(target=ask, daemon=True).start()
    try:
        return answer.result(within_s)
    except TimeoutError as error:
        raise SourceError(f"no answer within {within_s:g} s") from error
    except RepositoryNotFoundError as error:
        raise SourceError("no such repository, or one that needs `hf auth login`") from error
    except Exception as error:
        raise SourceError(_first_line(error)) from error


def _first_line(error: Exception) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0]
