"""A source made of bytes, and the client and standard input that reading takes."""

import io
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import cast

import httpx2
import pytest

from outrider.records.sources.framing import framed
from outrider.records.sources.opening import OpenSource, open_sources
from outrider.records.sources.sse import Framed

FrameBytes = Callable[[bytes], list[Framed]]


@pytest.fixture(scope="session")
def http() -> Iterator[httpx2.Client]:
    with httpx2.Client(trust_env=False) as client:
        yield client


@pytest.fixture(scope="session")
def frame(http: httpx2.Client) -> FrameBytes:
    """The documents of standard input with the given bytes."""

    def run(data: bytes) -> list[Framed]:
        (source,) = open_sources("-", stdin=io.BytesIO(data), http=http)
        assert isinstance(source, OpenSource)
        # Batches are only made where lines are read in one go.
        return cast("list[Framed]", [*framed(source)])

    return run


@pytest.fixture(scope="session")
def cases() -> Path:
    return Path(__file__).parents[1] / "cases" / "vllm"
