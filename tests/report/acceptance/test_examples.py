"""The examples in the docstrings hold."""

import doctest
from types import ModuleType

import pytest

from outrider.report.acceptance import bars, draft_length_table, literal, short_names, used_terms
from outrider.report.acceptance.expected import conditions


@pytest.mark.parametrize(
    "module", [bars, conditions, draft_length_table, literal, short_names, used_terms]
)
def test_docstring_examples_hold(module: ModuleType) -> None:
    results = doctest.testmod(module)
    assert results.attempted > 0
    assert results.failed == 0
