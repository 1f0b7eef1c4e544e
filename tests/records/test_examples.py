"""The examples in the docstrings hold."""

import doctest
from types import ModuleType

import pytest

from outrider.records import speculation_metrics
from outrider.records.probe import versions


@pytest.mark.parametrize("module", [speculation_metrics, versions])
def test_docstring_examples_hold(module: ModuleType) -> None:
    results = doctest.testmod(module)
    assert results.attempted > 0
    assert results.failed == 0
