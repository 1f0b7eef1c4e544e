"""The tables of an evidence file, an ordinary DuckDB database to query with any DuckDB from 1.3 on.

    meta          one row: the version of this schema and what wrote the file
    settings      one row: what the run was asked to do
    arms          one row per arm, in the order of the request
    prompts       one row per prompt, in the order of the workload
    environments  one row per session: a resumed run has several
    requests      one row per finished request, warm-up included, in the order in which they ended
    steps         one row per decode step of a request; the prefill is not one
    divergences   one row per request whose output left that of no speculation

Figures leave the warm-up out, so a query does too. The mean acceptance length of every arm:

    SELECT arm, 1 + sum(accepted) / count(*) AS M
    FROM steps JOIN requests ON steps.request = requests.ordinal
    WHERE phase = 'measured' AND drafted > 0
    GROUP BY arm

While a run is going on, and after one that was killed, a part of the data is in a second file
whose name ends in `.wal`; keep the two together until the run has been resumed.
"""

import re
from pathlib import Path

import duckdb

from outrider.errors import InvalidEvidence

SCHEMA_VERSION = 2

SCHEMA = """
CREATE TABLE meta (
    schema_version INTEGER PRIMARY KEY,
    outrider_version VARCHAR,           -- NULL where outrider was not installed as a package
    created TIMESTAMP NOT NULL          -- UTC
);
CREATE TABLE settings (
    model VARCHAR NOT NULL,             -- as asked for, like dtype and threads
    workload VARCHAR NOT NULL,
    workload_sha256 VARCHAR NOT NULL,
    repeats INTEGER NOT NULL,
    seed BIGINT NOT NULL,
    temperature DOUBLE NOT NULL,
    dtype VARCHAR,                      -- NULL left it to the engine
    threads INTEGER,                    -- NULL left it to the engine
    max_tokens INTEGER,                 -- NULL: only each prompt's own limit
    smoke BOOLEAN NOT NULL
);
CREATE TABLE arms (
    ordinal INTEGER NOT NULL UNIQUE,    -- from 0
    name VARCHAR PRIMARY KEY,
    method VARCHAR NOT NULL,
    num_speculative_tokens INTEGER NOT NULL,  -- K; 0 is no speculation
    prompt_lookup_min INTEGER,          -- NULL where the method has no use for it
    prompt_lookup_max INTEGER,
    ngram_tie VARCHAR,
    ngram_fill BOOLEAN                  -- whether missing drafts were filled up to K
);
CREATE TABLE prompts (
    ordinal INTEGER NOT NULL UNIQUE,    -- from 0
    prompt_id VARCHAR PRIMARY KEY,
    kind VARCHAR NOT NULL,
    token_ids INTEGER[] NOT NULL,       -- the chat template included
    max_tokens INTEGER NOT NULL,
    messages_json VARCHAR NOT NULL      -- [{"role": ..., "content": ...}, ...]
);
CREATE TABLE environments (
    session INTEGER PRIMARY KEY,        -- from 0
    started_at TIMESTAMP NOT NULL,      -- UTC
    backend VARCHAR NOT NULL,
    threads INTEGER NOT NULL,
    model STRUCT(
        name VARCHAR, source VARCHAR, sha256 VARCHAR,
        parameters BIGINT, dtype VARCHAR, hub_id VARCHAR
    ) NOT NULL,
    os VARCHAR NOT NULL,
    python VARCHAR NOT NULL,
    versions MAP(VARCHAR, VARCHAR) NOT NULL,  -- by package; a NULL version: absent
    cpu VARCHAR NOT NULL,
    cpu_features VARCHAR[],             -- NULL where the platform does not tell, like the cores
    physical_cores INTEGER,
    logical_cores INTEGER,
    memory_bytes BIGINT NOT NULL,
    gpus VARCHAR[] NOT NULL             -- empty: none that could be used
);
CREATE TABLE requests (
    ordinal INTEGER PRIMARY KEY,        -- from 0
    session INTEGER NOT NULL,           -- environments.session
    arm VARCHAR NOT NULL,               -- arms.name
    prompt_id VARCHAR NOT NULL,         -- prompts.prompt_id
    repeat INTEGER NOT NULL,            -- from 0
    phase VARCHAR NOT NULL CHECK (phase IN ('warmup', 'measured')),
    prompt_tokens INTEGER NOT NULL,
    output_token_ids INTEGER[] NOT NULL,  -- the first one is the prefill's
    finish_reason VARCHAR NOT NULL CHECK (finish_reason IN ('stop', 'length', 'error')),
    prefill_s DOUBLE NOT NULL           -- seconds, like every column that ends in _s
);
CREATE TABLE steps (
    request INTEGER,                    -- requests.ordinal
    step INTEGER,                       -- from 0 within the request
    drafted INTEGER NOT NULL,           -- 0: the step had no draft
    accepted INTEGER NOT NULL,          -- without the target's own token
    emitted INTEGER NOT NULL,           -- after a stop cut the run
    draft_s DOUBLE NOT NULL,
    verify_s DOUBLE NOT NULL,
    step_s DOUBLE NOT NULL,             -- the whole step; draft_s and verify_s are parts of it
    trimmed INTEGER NOT NULL,           -- proposed and not verified, as it did not pay
    invalidated INTEGER NOT NULL,       -- forbidden by a grammar
    PRIMARY KEY (request, step)
);
CREATE TABLE divergences (
    arm VARCHAR,
    prompt_id VARCHAR,
    repeat INTEGER,
    position INTEGER NOT NULL,          -- in the output, from 0
    expected_token_id INTEGER,          -- no speculation's; NULL: its output had ended
    actual_token_id INTEGER,            -- the arm's; NULL: its output had ended
    top2_gap DOUBLE,                    -- in logits; NULL: not computed
    kind VARCHAR NOT NULL CHECK (kind IN ('near-tie', 'real')),
    PRIMARY KEY (arm, prompt_id, repeat)
);
"""


def connect(path: Path, *, read_only: bool) -> duckdb.DuckDBPyConnection:
    """Connect to a database file, which is created where there is none; raises duckdb's errors."""
    return duckdb.connect(
        # A resolved path is never one of duckdb's special names, such as ":memory:".
        path.resolve(),
        read_only=read_only,
        config={
            # Newer releases of duckdb would write files that older ones cannot read.
            "storage_compatibility_version": "v1.2.0",
            # The engine under measurement has a use for the other cores.
            "threads": 1,
            # A file of another kind makes duckdb fetch an extension that reads it.
            "autoinstall_known_extensions": False,
            "autoload_known_extensions": False,
        },
    )


def is_database(path: Path) -> bool:
    """Whether the file is a DuckDB database, by its first bytes."""
    try:
        if not path.is_file():  # What is read from a pipe is gone from it.
            return False
        with path.open("rb") as file:
            return file.read(12)[8:] == b"DUCK"
    except (OSError, ValueError):
        return False


def open_evidence(path: Path, *, read_only: bool) -> duckdb.DuckDBPyConnection:
    """Connect to an existing evidence file; InvalidEvidence where it is not a usable one."""
    if not path.is_file():
        seen = f"{path} is a folder" if path.is_dir() else f"there is no file {path}"
        raise InvalidEvidence(seen, *_AN_EVIDENCE_FILE)
    try:
        connection = connect(path, read_only=read_only)
    except duckdb.ConnectionException as error:  # this very process has it open otherwise
        raise in_use(path, "this process") from error
    except duckdb.Error as error:
        if holder := lock_holder(error):
            raise in_use(path, holder) from error
        raise damaged(path, error) from error
    try:
        _check_version(connection, path)
    except BaseException:
        connection.close()
        raise
    return connection


def in_use(path: Path, by: str) -> InvalidEvidence:
    """Say that the file is being written."""
    return InvalidEvidence(
        f"{path} is in use by {by}",
        "a file that no run is writing",
        "wait until that run has ended",
    )


def lock_holder(error: duckdb.Error) -> str | None:
    """Which process has the file open, None where the error is another."""
    lock = re.search(r"Conflicting lock .*\((PID \d+)\)", str(error))
    return lock[1] if lock else None


def damaged(path: Path, error: duckdb.Error) -> InvalidEvidence:
    """Say what duckdb found wrong with the file."""
    return InvalidEvidence(f"{path} cannot be read ({first_line(error)})", *_AN_EVIDENCE_FILE)


def first_line(error: duckdb.Error) -> str:
    """What duckdb says is wrong, without its advice."""
    return str(error).partition("\n")[0]


_AN_EVIDENCE_FILE = ("an evidence file", "name the file that `outrider tune` wrote")


def _check_version(connection: duckdb.DuckDBPyConnection, path: Path) -> None:
    try:
        rows = connection.execute("SELECT schema_version, outrider_version FROM meta").fetchall()
    except (duckdb.CatalogException, duckdb.BinderException) as error:
        raise InvalidEvidence(
            f"{path} is a database without a run in it", *_AN_EVIDENCE_FILE
        ) from error
    except duckdb.Error as error:
        raise damaged(path, error) from error
    if [version for version, _ in rows] != [SCHEMA_VERSION]:
        versions = ", ".join(f"{version} of outrider {writer}" for version, writer in rows)
        raise InvalidEvidence(
            f"{path} has schema version {versions or 'none'}",
            f"schema version {SCHEMA_VERSION}",
            "use the outrider that wrote it",
        )
