"""Servers for the tests, and what asks them."""

from collections.abc import Iterator
from pathlib import Path

import httpx2
import pytest
from tests.server.serving import AlphabetModel, Running, api_over, running

from outrider.engine.tokenizer import Tokenizer


@pytest.fixture(scope="session")
def tokenizer(tiny_model: Path) -> Tokenizer:
    """One token for each byte."""
    return Tokenizer(tiny_model)


@pytest.fixture(scope="module")
def served(tokenizer: Tokenizer) -> Iterator[Running]:
    """A server over an alphabet, with nothing special about it."""
    with running(api_over(AlphabetModel(), tokenizer)) as server:
        yield server


@pytest.fixture(scope="module")
def client(served: Running) -> Iterator[httpx2.Client]:
    """Asks `served`."""
    with httpx2.Client(base_url=served.url, timeout=60) as http:
        yield http
