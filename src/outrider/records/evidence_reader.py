"""Reads an evidence file back into the records that were written."""

from pathlib import Path

import duckdb
from pydantic import TypeAdapter, ValidationError

from outrider.errors import InvalidEvidence
from outrider.records.evidence import Evidence
from outrider.records.evidence_schema import damaged, open_evidence


def read_evidence(path: Path) -> Evidence:
    """Read the file of a finished or an interrupted run, and leave it as it is.

    Raises InvalidEvidence where it is missing, not an evidence file of this schema version,
    damaged, or in use by a run.
    """
    connection = open_evidence(path, read_only=True)
    try:
        return _EVIDENCE.validate_python(
            {
                "settings": {
                    **next(iter(_rows(connection, "SELECT * FROM settings")), {}),
                    "arms": _rows(connection, "SELECT * FROM arms ORDER BY ordinal"),
                },
                "environments": _rows(connection, _SELECT_ENVIRONMENTS),
                "prompts": _rows(connection, "SELECT * FROM prompts ORDER BY ordinal"),
                "requests": (requests := _rows(connection, _SELECT_REQUESTS)),
                "sessions": [request["session"] for request in requests],
                "divergences": _rows(
                    connection, "SELECT * FROM divergences ORDER BY prompt_id, arm, repeat"
                ),
            }
        )
    except duckdb.Error as error:
        raise damaged(path, error) from error
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        place = ".".join(str(part) for part in first["loc"])
        raise InvalidEvidence(
            f"{path} holds {first['input']!r} as {place}",
            "only what a run has written",
            "restore the file or measure again",
        ) from error
    finally:
        connection.close()


_EVIDENCE = TypeAdapter(Evidence)

# The letter makes the moment aware.
_SELECT_ENVIRONMENTS = """
    SELECT * REPLACE (strftime(started_at, '%Y-%m-%dT%H:%M:%S.%fZ') AS started_at)
    FROM environments ORDER BY session
"""

_SELECT_REQUESTS = """
    SELECT requests.*, coalesce(taken, []) AS steps
    FROM requests LEFT JOIN (
        SELECT request, list(steps ORDER BY step) AS taken FROM steps GROUP BY request
    ) ON request = ordinal
    ORDER BY ordinal
"""


def _rows(connection: duckdb.DuckDBPyConnection, query: str) -> list[dict[str, object]]:
    result = connection.execute(query)
    names = [column[0] for column in result.description]
    return [dict(zip(names, row, strict=True)) for row in result.fetchall()]
