"""A log in several files, with something wrong in some of them."""

import json
from pathlib import Path
from typing import Any

import numpy as np

from outrider.acceptance.totals import Totals
from outrider.records.collecting import Collection
from outrider.replay.lookup.grid import Grid
from outrider.replay.lookup.registry import lookup_settings
from outrider.replay.workplaces.base import Work

FILES = 4
ANSWERS = 6


def row(each: int, **told: Any) -> dict[str, Any]:
    """An answer that repeats its prompt and those of others."""
    return {
        "prompt_token_ids": [each, 1, 2, 3, 4, 5],
        "completion_token_ids": [1, 2, 3, 4, each, 2, 3, 4, 5, 1, 7, 8, 9],
        "kind": "copy" if each % 2 else "chat",
        "timestamp": 1000 - each if each == 3 else 1000 + each,
        **told,
    }


def write(path: Path, rows: list[Any]) -> Path:
    path.write_text("".join(f"{json.dumps(each)}\n" for each in rows))
    return path


def folder_of_logs(folder: Path) -> Path:
    """Four files of six answers and a bad line; a broken file; a link to nothing; a file again."""
    folder.mkdir()
    for file in range(FILES):
        rows = [row(file * ANSWERS + each) for each in range(ANSWERS)]
        write(folder / f"part-{file}.jsonl", [*rows, {"completion_ids": []}])
    (folder / "part-4.jsonl.gz").write_bytes(b"\x1f\x8b\x08 no gzip at all")
    (folder / "part-5.jsonl").symlink_to(folder / "nothing")
    (folder / "part-6.jsonl").hardlink_to(folder / "part-0.jsonl")
    return folder


def work(grid: Grid | None = None, **told: Any) -> Work:
    """Work for n-gram lookup and for suffix decoding without a cache of earlier answers."""
    grid = grid or Grid(max_cached_requests=(0,))
    return Work(lookup_settings(["ngram", "suffix"], grid), (1, 4), **told)


def check_equal(one: Collection, other: Collection) -> None:
    """Hold everything that was counted, added up and listed to be the same."""
    assert (one.read, one.used, one.no_metrics) == (other.read, other.used, other.no_metrics)
    assert (one.bad_count, one.bad) == (other.bad_count, other.bad)
    assert told(one).keys() == told(other).keys()
    for key, totals in told(one).items():
        assert np.array_equal(totals.rows, told(other)[key].rows)


def told(collection: Collection) -> dict[tuple[object, ...], Totals]:
    """The totals by K and by the values of the keys in the order of their names."""
    names = sorted(collection.keys)
    return {
        (k, *(dict(zip(collection.keys, values, strict=True))[name] for name in names)): totals
        for (_, _, k, values), totals in collection.cells.items()
    }
