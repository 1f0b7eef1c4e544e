import math

import numpy as np
import pytest
import torch

from outrider.engine.drafting.draft import Draft
from outrider.engine.verification.broken_logits import BrokenRow, take_out_broken_rows

DRAFT = Draft(np.array([[1, 2], [-1, -1], [3, -1]], np.int32), np.array([2, 0, 1]))
"""Three requests with three, one and two rows."""


def test_finite_logits_with_forbidden_tokens_are_no_failure() -> None:
    logits = torch.zeros(6, 4)
    logits[:, 0] = -math.inf
    assert take_out_broken_rows(logits, DRAFT) == []


@pytest.mark.parametrize("value", [math.nan, math.inf])
def test_a_number_that_is_none_fails_its_own_request_alone(value: float) -> None:
    logits = torch.zeros(6, 4)
    logits[5, 1] = value
    ((request, row, reason),) = take_out_broken_rows(logits, DRAFT)
    assert (request, row) == (2, 1)
    assert "not finite numbers" in reason


def test_each_request_is_named_once_with_its_own_reason() -> None:
    logits = torch.zeros(6, 4)
    logits[1:3, 0] = math.nan
    logits[3] = -math.inf
    assert take_out_broken_rows(logits, DRAFT) == [
        BrokenRow(0, 1, "the target's logits are not finite numbers, as from a broken checkpoint"),
        BrokenRow(1, 0, "every token is forbidden"),
    ]


def test_what_is_left_can_be_judged_and_the_other_rows_are_as_they_were() -> None:
    with torch.inference_mode():
        logits = torch.arange(24.0).reshape(6, 4)
        logits[2, 3] = math.nan
    take_out_broken_rows(logits, DRAFT)
    assert logits[2].tolist() == [0.0] * 4
    kept = [0, 1, 3, 4, 5]
    assert torch.equal(logits[kept], torch.arange(24.0).reshape(6, 4)[kept])


def test_nobody_to_ask_is_nobody_broken() -> None:
    assert take_out_broken_rows(torch.zeros(0, 4), Draft.empty(0, 2)) == []
