"""Writes an evidence file while a run goes on."""

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from types import TracebackType
from typing import Self

import duckdb
import numpy as np
from numpy.typing import NDArray

from outrider.errors import InvalidEvidence, UnwritableOutput
from outrider.records.divergence import Divergence
from outrider.records.environment import Environment
from outrider.records.evidence import RequestKey
from outrider.records.evidence_schema import (
    SCHEMA,
    SCHEMA_VERSION,
    connect,
    damaged,
    lock_holder,
    open_evidence,
)
from outrider.records.output_file import check_vacant, writing
from outrider.records.prompt import PromptRecord
from outrider.records.request import Phase, RequestRecord, StepRecord
from outrider.records.run import RunSettings


class EvidenceWriter:
    """Keeps each request once it is recorded, in a transaction of its own.

    What was recorded survives an interrupt, a kill and a full disk. Use it as a context manager:
    closing leaves everything in the one file. Every method raises UnwritableOutput where the disk
    refuses.
    """

    def __init__(self, path: Path, connection: duckdb.DuckDBPyConnection) -> None:
        self._path = path
        self._connection = connection
        self._session = 0
        self._ordinal = 0
        self._measured: set[RequestKey] = set()

    @classmethod
    def create(
        cls,
        path: Path,
        settings: RunSettings,
        environment: Environment,
        prompts: Iterable[PromptRecord],
    ) -> Self:
        """Start a new file, or leave none where that fails; an existing path is refused."""
        check_vacant(path)
        with writing(path):
            try:
                writer = cls(path, connect(path, read_only=False))
            except duckdb.IOException as error:
                if lock_holder(error) is None:  # else another run was quicker, and has the file
                    _remove(path)
                raise
            try:
                with writer._transaction():
                    writer._describe_run(settings, environment, prompts)
                    writer._begin_session(environment)
            except BaseException:
                writer._connection.close()
                _remove(path)
                raise
        return writer

    @classmethod
    def append(cls, path: Path, environment: Environment) -> Self:
        """Add a session to an existing file, with the same weights in the same dtype.

        Raises InvalidEvidence where the file is not one, does not fit or is in use.
        """
        if path.is_file() and not os.access(path, os.W_OK):
            raise UnwritableOutput(
                f"{path} is read-only", "a file to add to", "make it writable or resume a copy"
            )
        writer = cls(path, open_evidence(path, read_only=False))
        try:
            with writer._transaction():
                writer._check_model(environment)
                writer._find_place()
                writer._begin_session(environment)
        except duckdb.Error as error:
            writer._connection.close()
            raise damaged(path, error) from error
        except BaseException:
            writer._connection.close()
            raise
        return writer

    def record(self, request: RequestRecord) -> None:
        """Keep one finished request; a measured one comes only once in a run."""
        key = RequestKey(request.arm, request.prompt_id, request.repeat)
        measured = request.phase is Phase.MEASURED
        assert not (measured and key in self._measured), f"{key} was recorded before"
        with self._transaction():
            self._insert(
                "requests",
                {
                    "ordinal": self._ordinal,
                    "session": self._session,
                    "arm": request.arm,
                    "prompt_id": request.prompt_id,
                    "repeat": request.repeat,
                    "phase": request.phase,
                    "prompt_tokens": request.prompt_tokens,
                    # As text, for duckdb 1.3 takes 20 ms to bind a list of this length.
                    "output_token_ids": str(list(request.output_token_ids)),
                    "finish_reason": request.finish_reason,
                    "prefill_s": request.prefill_s,
                },
            )
            self._connection.register("new_steps", _step_columns(request.steps))
            self._connection.execute(_INSERT_STEPS, [self._ordinal])
            # In here, for Ctrl-C strikes at the end of the block and the run may yet go on.
            self._ordinal += 1
            if measured:
                self._measured.add(key)

    def record_divergences(self, divergences: Iterable[Divergence]) -> None:
        """Keep what the comparison of outputs found; a second finding on a request replaces it."""
        with self._transaction():
            for divergence in divergences:
                self._insert("divergences", asdict(divergence), verb="INSERT OR REPLACE")

    def close(self) -> None:
        """Fold what was recorded into the one file and release it."""
        try:
            with writing(self._path):
                self._connection.execute("CHECKPOINT")
        finally:
            self._connection.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if error is None:
            self.close()
        else:
            # What ended the run is worth more to the user than what follows from it.
            with suppress(UnwritableOutput):
                self.close()

    def _describe_run(
        self, settings: RunSettings, environment: Environment, prompts: Iterable[PromptRecord]
    ) -> None:
        self._connection.execute(SCHEMA)
        self._insert(
            "meta",
            {
                "schema_version": SCHEMA_VERSION,
                "outrider_version": environment.versions.get("outrider"),
                "created": _naive_utc(environment.started_at),
            },
        )
        row = asdict(settings)
        del row["arms"]
        self._insert("settings", row)
        for ordinal, arm in enumerate(settings.arms):
            self._insert("arms", {"ordinal": ordinal, **asdict(arm)})
        for ordinal, prompt in enumerate(prompts):
            self._insert("prompts", {"ordinal": ordinal, **asdict(prompt)})

    def _begin_session(self, environment: Environment) -> None:
        row = asdict(environment)
        row["started_at"] = _naive_utc(environment.started_at)
        row["versions"] = {
            "key": list(environment.versions),
            "value": list(environment.versions.values()),
        }
        self._insert("environments", {"session": self._session, **row})

    def _check_model(self, environment: Environment) -> None:
        model = environment.model
        for sha256, dtype in self._connection.execute(
            "SELECT DISTINCT model.sha256, model.dtype FROM environments"
        ).fetchall():
            if (sha256, dtype) != (model.sha256, model.dtype):
                raise InvalidEvidence(
                    f"{self._path} was measured on weights {sha256[:12]} in {dtype}",
                    f"weights {model.sha256[:12]} in {model.dtype}, as they are loaded now",
                    "resume with the model and dtype of the file, or start a new one",
                )

    def _find_place(self) -> None:
        keys = self._connection.execute(
            "SELECT arm, prompt_id, repeat FROM requests WHERE phase = 'measured'"
        ).fetchall()
        self._measured = {RequestKey(*key) for key in keys}
        [(self._ordinal, self._session)] = self._connection.execute(
            "SELECT coalesce((SELECT max(ordinal) + 1 FROM requests), 0), "
            "(SELECT max(session) + 1 FROM environments)"
        ).fetchall()

    def _insert(self, table: str, row: Mapping[str, object], *, verb: str = "INSERT") -> None:
        names, marks = ", ".join(row), ", ".join("?" * len(row))
        self._connection.execute(
            f"{verb} INTO {table} ({names}) VALUES ({marks})",
            list(row.values()),
        )

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        with writing(self._path):
            self._connection.begin()
            try:
                yield
            except BaseException:
                self._connection.rollback()
                raise
            self._connection.commit()


_INSERT_STEPS = "INSERT INTO steps BY NAME SELECT ? AS request, * FROM new_steps"

_STEP_DTYPES = {
    "drafted": np.int32,
    "accepted": np.int32,
    "emitted": np.int32,
    "draft_s": np.float64,
    "verify_s": np.float64,
    "step_s": np.float64,
    "trimmed": np.int32,
    "invalidated": np.int32,
}


def _step_columns(steps: Sequence[StepRecord]) -> dict[str, NDArray[np.generic]]:
    return {"step": np.arange(len(steps), dtype=np.int32)} | {
        name: np.array([getattr(step, name) for step in steps], dtype=dtype)
        for name, dtype in _STEP_DTYPES.items()
    }


def _remove(path: Path) -> None:
    for file in (path, path.with_name(f"{path.name}.wal")):
        file.unlink(missing_ok=True)


def _naive_utc(moment: datetime) -> datetime:
    return moment.astimezone(UTC).replace(tzinfo=None)
