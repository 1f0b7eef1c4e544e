"""A collection as a file, so that many machines each read a part and one merges them."""

from pathlib import Path
from typing import Annotated, Any, TypeAlias

import msgspec
import numpy as np

from outrider.acceptance.columns import columns_of
from outrider.acceptance.totals import Totals
from outrider.records.collecting import Collection, mark_of
from outrider.records.reading import AcceptanceRecord, InvalidRecord, Place, Scope
from outrider.records.validation import LONGEST_DRAFT, MOST_COUNTED
from outrider.records.whole_file import write_whole

SCHEMA = "outrider.partial/1"
_MARK = 8

Count: TypeAlias = Annotated[int, msgspec.Meta(ge=0, le=MOST_COUNTED)]
Gap: TypeAlias = Annotated[float, msgspec.Meta(ge=0, le=MOST_COUNTED)]


def write_partial(collection: Collection, path: Path) -> None:
    """Write the collection to the file `path`."""
    content: dict[str, Any] = {
        "schema": SCHEMA,
        "keys": collection.keys,
        "dropped_keys": sorted(collection.dropped_keys),
        "told_keys": sorted(collection.told_keys),
        "read": collection.read,
        "used": collection.used,
        "no_metrics": dict(collection.no_metrics),
        "snapshots": collection.snapshots,
        "ids": b"".join(sorted(collection.ids)),
        "bad_count": collection.bad_count,
        "bad": [[place.source, place.line, reason] for place, reason in collection.bad],
        "cells": [
            {
                "scope": scope.value,
                "engine": engine,
                "k": k,
                "values": list(values),
                "columns": totals.columns.names,
                "rows": totals.rows.tolist(),
                "names": totals.names,
                "longest_gap_ms": totals.longest_gap_ms,
            }
            for (scope, engine, k, values), totals in collection.cells.items()
        ],
    }
    # With a mark of its own, even what has no ids is not merged twice.
    content["ids"] += mark_of(msgspec.json.encode(content))
    write_whole(path, msgspec.json.encode(content))


def is_partial(value: Any) -> bool:
    """Whether a JSON value is what `write_partial` writes."""
    return isinstance(value, dict) and value.get("schema") == SCHEMA


def partial_from_json(value: dict[str, Any]) -> Collection:
    """Return the collection that was written; InvalidRecord where the value is not such a one."""
    try:
        content = msgspec.convert(value, _Partial)
        cells = {}
        for cell in content.cells:
            if not 0 <= cell.k <= LONGEST_DRAFT:
                raise InvalidRecord("a damaged partial report")
            columns = columns_of(cell.k)
            rows = np.array(cell.rows, dtype=np.float64).reshape(len(cell.rows), -1)
            # Rows of a version with other columns would be added to the wrong sums.
            if cell.columns != columns.names or rows.shape[1:] != (columns.width,):
                raise InvalidRecord("a partial report of another version; write it anew")
            believable = np.isfinite(rows).all() and (rows >= 0).all()
            if len(cell.values) != len(content.keys) or not believable:
                raise InvalidRecord("a damaged partial report")
            key = (Scope(cell.scope), cell.engine, cell.k, tuple(cell.values))
            if len(cell.names) > len(rows):
                raise InvalidRecord("a damaged partial report")
            totals = Totals(columns, rows, tuple(cell.names), cell.longest_gap_ms)
            if (cell.longest_gap_ms is None) != (totals.count("gaps") == 0):
                raise InvalidRecord("a damaged partial report")
            cells[key] = totals
    except (msgspec.ValidationError, ValueError) as error:
        raise InvalidRecord(f"a damaged partial report ({error})") from error
    records = sum(totals.count("records") for totals in cells.values())
    told = content.used + sum(content.no_metrics.values()) + content.bad_count
    if (
        records + len(content.snapshots) != content.used
        or told != content.read
        or len(cells) != len(content.cells)
        or len({*content.keys}) != len(content.keys)
    ):
        raise InvalidRecord("a damaged partial report: its counts do not agree")
    collection = Collection(
        keys=content.keys,
        cells=cells,
        dropped_keys=set(content.dropped_keys),
        told_keys=set(content.told_keys),
        read=content.read,
        used=content.used,
        snapshots=content.snapshots,
        ids={content.ids[at : at + _MARK] for at in range(0, len(content.ids), _MARK)},
        bad_count=content.bad_count,
        bad=[(Place(source, line), reason) for source, line, reason in content.bad],
    )
    collection.no_metrics.update(content.no_metrics)
    return collection


class _Cell(msgspec.Struct):
    scope: str
    engine: str
    k: int
    values: list[str | int | None]
    columns: list[str]
    rows: list[list[float]]
    names: list[str]
    longest_gap_ms: Gap | None = None


class _Partial(msgspec.Struct):
    keys: list[str]
    dropped_keys: list[str]
    told_keys: list[str]
    read: Count
    used: Count
    no_metrics: dict[str, Count]
    snapshots: dict[str, AcceptanceRecord]
    ids: bytes
    bad_count: Count
    bad: list[tuple[str, int | None, str]]
    cells: list[_Cell]
