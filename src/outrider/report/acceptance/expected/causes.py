"""The possible causes of a difference, in the order to go through them."""

from collections.abc import Callable

from outrider.report.acceptance.expected.case import Case
from outrider.report.acceptance.expected.counting_causes import counting
from outrider.report.acceptance.expected.draft_causes import draft_length
from outrider.report.acceptance.expected.expectation import Cause
from outrider.report.acceptance.expected.prompt_causes import (
    dataset,
    length_and_language,
    sampling,
)
from outrider.report.acceptance.expected.setup_causes import (
    checkpoints,
    engine,
    quantisation,
    template,
)

CAUSES: tuple[Callable[[Case], Cause], ...] = (
    template,
    quantisation,
    draft_length,
    dataset,
    engine,
    sampling,
    checkpoints,
    length_and_language,
    counting,
)
"""Another cause is a function and a line here."""


def find_causes(case: Case) -> tuple[Cause, ...]:
    """Judge every cause; all of them are returned, also those that are the same or ruled out."""
    return tuple(judge(case) for judge in CAUSES)
