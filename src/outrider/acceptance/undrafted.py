"""Decode steps that had no draft, told or worked out."""

import numpy as np

from outrider.acceptance.intervals import FloatArray
from outrider.acceptance.totals import Totals


def undrafted_steps(totals: Totals, sums: FloatArray) -> FloatArray:
    """Return the decode steps without a draft, [...]; 0 where they are unknown.

    Without a count of decode steps, they are the tokens that neither prefill nor steps with a draft
    explain, fewer by those accepted past the end of an answer.
    """
    columns = totals.columns
    if knows_decode_steps(totals):
        told: FloatArray = sums[..., columns["decode_steps"]] - sums[..., columns["covered_steps"]]
        return told
    if not knows_tokens(totals):
        return np.zeros(sums.shape[:-1])
    explained = sums[..., columns["explained_tokens"]] + sums[..., columns["completion_records"]]
    return np.maximum(sums[..., columns["completion_tokens"]] - explained, 0)


def knows_decode_steps(totals: Totals) -> bool:
    """Whether every record with steps tells its decode steps."""
    told = totals.count("covered_steps") == totals.count("steps")
    return told and totals.count("decode_steps") > 0


def knows_tokens(totals: Totals) -> bool:
    """Whether every record is of one answer and tells its tokens."""
    single = totals.count("requests") == totals.count("records")
    return single and totals.count("completion_records") == totals.count("records")
