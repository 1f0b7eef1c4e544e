"""The examples in the docstrings hold."""

import doctest
from types import ModuleType

import pytest

from outrider.acceptance import expectation, histogram, ratio, speed, survival


@pytest.mark.parametrize("module", [expectation, histogram, ratio, speed, survival])
def test_docstring_examples_hold(module: ModuleType) -> None:
    results = doctest.testmod(module)
    assert results.attempted > 0
    assert results.failed == 0
