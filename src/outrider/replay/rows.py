"""From the steps of answers to the rows of sums that every report is made of."""

import numpy as np
from numpy.typing import NDArray

from outrider.acceptance.columns import columns_of
from outrider.acceptance.intervals import FloatArray
from outrider.records.numbers import Numbers
from outrider.records.tabulate import rows_of
from outrider.replay.batch import AnswerBatch
from outrider.replay.walk import Tally


def sums_of(batch: AnswerBatch, tally: Tally) -> FloatArray:
    """Return one row per answer, [N, columns of K], with the length of every draft known."""
    answers, k = len(batch.answers), tally.k
    unknown = np.full(answers, np.nan)
    no, yes = np.zeros(answers, bool), np.ones(answers, bool)
    steps = tally.histograms.sum(axis=1)
    rows = rows_of(
        Numbers(
            k=k,
            requests=np.ones(answers),
            steps=steps.astype(float),
            accepted=(tally.histograms @ np.arange(k + 1)).astype(float),
            drafted=tally.drafted.astype(float),
            decode_steps=tally.decode_steps.astype(float),
            prompt_tokens=(batch.outputs - batch.starts[:-1]).astype(float),
            completion_tokens=batch.completion_lengths.astype(float),
            cached_tokens=unknown,
            chunks=unknown,
            steps_estimated=no,
            accepted_estimated=no,
            drafted_nominal=no,
            repetitive=no,
            text_seen=no,
            histogram_known=yes,
            histograms=tally.histograms.astype(float),
            step_lists=None,
            tabled=np.zeros(0, np.int64),
            tables=np.zeros((0, k + 1, k + 1)),
        )
    )
    columns = columns_of(k)
    for name, counts in (
        ("at_risk", _at_least(tally.reached)),
        ("passed", _at_least(tally.histograms)),
        ("band_steps", tally.band_steps),
        ("band_accepted", tally.band_accepted),
    ):
        rows[:, columns.slice(name)] = counts
    rows[:, columns["length_known_steps"]] = steps
    return rows


def _at_least(counts: NDArray[np.int64]) -> NDArray[np.int64]:
    """From counts by length 0 ... K to how many have at least length 1 ... K."""
    found: NDArray[np.int64] = np.cumsum(counts[:, ::-1], axis=1)[:, ::-1][:, 1:]
    return found
