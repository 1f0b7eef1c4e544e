"""What holding a segment against an expected figure comes to."""

from dataclasses import dataclass
from typing import Literal, TypeAlias

from outrider.acceptance.expectation import Outcome

Status: TypeAlias = Literal["differs", "same", "ruled out", "not told"]


@dataclass(frozen=True, slots=True)
class Cause:
    """One possible cause of a difference: what is known of it, and what to look at or run next.

    `check` is None where the cause is the same on both sides or ruled out.
    """

    name: str
    status: Status
    detail: str
    check: str | None = None


@dataclass(frozen=True, slots=True)
class Expectation:
    """An expected M beside that of one segment.

    `source` is what was typed, or the stored report. `expected`, from `expected_low` to
    `expected_high`, is the figure as it stands there, of `expected_k`; None where the report has no
    such segment. `difference_tokens` and `difference_share` (of the expected figure) are negative
    below it, and None where nothing was compared; where K differs they are the least that no K
    explains. `text` says all of it in a sentence. `causes` are in one order always, and empty where
    M is as expected or unknown.
    """

    source: str
    expected: float | None
    expected_low: float | None
    expected_high: float | None
    expected_k: int | None
    outcome: Outcome
    difference_tokens: float | None
    difference_share: float | None
    text: str
    causes: tuple[Cause, ...]
