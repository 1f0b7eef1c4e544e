import doctest

import pytest

from outrider.records.sources import addresses
from outrider.records.sources.addresses import page_address, without_password


def test_the_docstring_examples_hold() -> None:
    results = doctest.testmod(addresses)
    assert results.attempted > 0
    assert results.failed == 0


@pytest.mark.parametrize("url", ["http://host:1", "http://host:1/", "http://host:1//v1/"])
def test_a_server_alone_is_read_at_metrics(url: str) -> None:
    assert page_address(url) == "http://host:1/metrics"


@pytest.mark.parametrize(
    "url", ["http://host/metrics", "http://host/v1/x", "http://host?a=1", "https://host/v2", "v1"]
)
def test_any_other_address_is_read_as_it_is(url: str) -> None:
    assert page_address(url) == url


def test_only_an_address_has_a_password() -> None:
    assert without_password("https://a:b@c:d@host/x@y") == "https://host/x@y"
    assert without_password("logs/a://b@c") == "logs/a://b@c"
