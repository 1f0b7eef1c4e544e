"""What a source of models is: it puts checked files into a scratch folder."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from outrider.engine.models.catalogue import Wanted

Report = Callable[[str], None]
"""Hears a line for whatever is fetched or fails."""

HUB_FOLDER = "safetensors"
"""What the cache calls a fetched folder."""


class SourceError(Exception):
    """One source could not deliver, for the reason that is the message; the next is tried."""


@dataclass(frozen=True, slots=True)
class Source:
    """A place to fetch from: `fetch(wanted, scratch, report)` returns a checked file or folder.

    What it returns lies in `scratch` and is called as the cache will call it: `HUB_FOLDER`, with a
    manifest, or the catalogue entry's `gguf_filename`. It raises SourceError where it cannot.
    """

    name: str
    fetch: Callable[[Wanted, Path, Report], Path]
