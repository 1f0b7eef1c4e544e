"""The machine, software and model that a session of a run had."""

from dataclasses import dataclass
from datetime import datetime


@dataclass(frozen=True, slots=True)
class ModelIdentity:
    """The weights that were run.

    `source` is where they came from, `sha256` that of the file (or of the folder's list of
    hashes), `parameters` their number, `hub_id` the Hugging Face id, None where it is unknown.
    """

    name: str
    source: str
    sha256: str
    parameters: int
    dtype: str
    hub_id: str | None


@dataclass(frozen=True, slots=True)
class Environment:
    """One session of a run: a run that was interrupted and resumed has several.

    `started_at` is aware and in UTC. `versions` maps package names to versions, None where the
    package is absent. `cpu_features` and the core counts are None where the platform does not
    tell. `gpus` are the names of those that could be used, and empty without any. `threads` is what
    the engine computes with, `backend` what it computes through.
    """

    started_at: datetime
    backend: str
    threads: int
    model: ModelIdentity
    os: str
    python: str
    versions: dict[str, str | None]
    cpu: str
    cpu_features: tuple[str, ...] | None
    physical_cores: int | None
    logical_cores: int | None
    memory_bytes: int
    gpus: tuple[str, ...]
