"""Nothing that a source holds raises: 100,000 damaged inputs, made of real ones of each kind."""

import io
import random
from collections.abc import Iterator
from pathlib import Path

import httpx2
import pytest

from outrider.records.adapters.registry import ADAPTERS
from outrider.records.collecting import Collector
from outrider.records.sources.reader import read
from outrider.report.acceptance.as_json import report_to_json
from outrider.report.acceptance.building import build_acceptance_report

CASES = Path(__file__).parent / "records" / "cases"
LARGEST = 4096
INPUTS = 100_000
TO_THE_REPORT = 50
"""Every so many inputs go all the way to the report."""

JUNK = (
    b"null",
    b"-1",
    b"1.5",
    b"1e999",
    b"NaN",
    b"1" + b"0" * 30,
    b"true",
    b'""',
    b"[]",
    b"{}",
    b"[[[[",
    b'"\\ud800"',
    b"\xff\xfe",
    b"\0\0",
    b"9007199254740993",
    b"255,256",
    b"\n\n",
    b"data: ",
    b"1e308,-1" + b"0" * 400,
    b"1e1000000",
)


def samples() -> list[bytes]:
    """The beginning, and for long files also a later part, of every captured payload."""
    found = []
    for path in sorted(CASES.rglob("*")):
        if path.is_file() and path.suffix != ".md":
            content = path.read_bytes()
            lines = content.splitlines(keepends=True)
            found.append(b"".join(lines[:3])[:LARGEST])
            found.extend(line[:LARGEST] for line in lines[3:40:6])
            found.append(content[:LARGEST])
    return found


def damaged(original: bytes, rng: random.Random, others: list[bytes]) -> bytes:
    """A few of: cut, bytes changed, numbers and words replaced, parts doubled or of another."""
    content = bytearray(original)
    for _ in range(rng.randint(1, 4)):
        if not content:
            break
        at = rng.randrange(len(content))
        kind = rng.randrange(7)
        if kind == 0:
            del content[at:]
        elif kind == 1:
            content[at] = rng.randrange(256)
        elif kind == 2:
            end = at
            while end < len(content) and chr(content[end]) not in ",:]} \n":
                end += 1
            content[at:end] = rng.choice(JUNK)
        elif kind == 3:
            del content[at : at + rng.randint(1, 40)]
        elif kind == 4:
            content[at:at] = content[at : at + rng.randint(1, 200)]
        elif kind == 5:
            content[at:at] = rng.choice(JUNK)
        else:
            other = rng.choice(others)
            content[at : at + 20] = other[: rng.randint(1, 200)]
    return bytes(content)


def inputs(count: int, seed: int) -> Iterator[bytes]:
    rng = random.Random(seed)  # noqa: S311  nothing secret
    originals = samples()
    for number in range(count):
        yield damaged(originals[number % len(originals)], rng, originals)


def run(count: int, seed: int) -> int:
    """Read that many inputs, some to the report; return how many records were usable."""
    used = 0
    with httpx2.Client() as http:
        for number, content in enumerate(inputs(count, seed)):
            collector = Collector()
            for place, reading in read(["-"], ADAPTERS, stdin=io.BytesIO(content), http=http):
                collector.add(place, reading)
            collection = collector.finish()
            used += collection.used
            assert collection.read == (
                collection.used + sum(collection.no_metrics.values()) + collection.bad_count
            )
            if number % TO_THE_REPORT == 0:
                report_to_json(build_acceptance_report(collection, sources=["-"]))
    return used


def test_some_thousand_damaged_inputs_are_read_to_the_end() -> None:
    # Were all refused outright, nothing would have been tried.
    assert run(3000, seed=1) > 300


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_a_hundred_thousand_damaged_inputs_are_read_to_the_end() -> None:
    assert run(INPUTS, seed=2) > INPUTS // 10
