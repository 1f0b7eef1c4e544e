from dataclasses import fields
from pathlib import Path

import duckdb
import pytest

from outrider.records.arm import Arm
from outrider.records.divergence import Divergence
from outrider.records.environment import Environment, ModelIdentity
from outrider.records.evidence_schema import SCHEMA, connect
from outrider.records.prompt import PromptRecord
from outrider.records.request import RequestRecord, StepRecord
from outrider.records.run import RunSettings


@pytest.mark.parametrize(
    ("table", "record", "elsewhere", "added"),
    [
        ("settings", RunSettings, {"arms"}, set()),
        ("arms", Arm, set(), {"ordinal"}),
        ("prompts", PromptRecord, set(), {"ordinal"}),
        ("environments", Environment, set(), {"session"}),
        ("requests", RequestRecord, {"steps"}, {"ordinal", "session"}),
        ("steps", StepRecord, set(), {"request", "step"}),
        ("divergences", Divergence, set(), set()),
    ],
)
def test_every_field_of_a_record_is_a_column(
    table: str, record: type, elsewhere: set[str], added: set[str]
) -> None:
    with duckdb.connect() as connection:
        connection.execute(SCHEMA)
        columns = {row[0] for row in connection.execute(f"DESCRIBE {table}").fetchall()}
    assert columns == {field.name for field in fields(record)} - elsewhere | added


def test_the_model_is_a_struct_of_its_fields() -> None:
    with duckdb.connect() as connection:
        connection.execute(SCHEMA)
        described = dict(row[:2] for row in connection.execute("DESCRIBE environments").fetchall())
    for field in fields(ModelIdentity):
        assert field.name in described["model"]


def test_files_suit_the_oldest_release_of_duckdb_that_is_supported(tmp_path: Path) -> None:
    path = tmp_path / "run.duckdb"
    with connect(path, read_only=False) as connection:
        connection.execute(SCHEMA)
    # The storage version, a little-endian number behind the checksum and the magic bytes.
    assert path.read_bytes()[8:20] == b"DUCK" + (65).to_bytes(8, "little")
