"""From the numbers of records to rows of sums."""

from collections.abc import Sequence

import numpy as np

from outrider.acceptance.columns import OUTPUT_BANDS, Columns, columns_of
from outrider.acceptance.intervals import FloatArray
from outrider.records.numbers import Numbers, StepLists, numbers_of
from outrider.records.reading import AcceptanceRecord

_CADENCE = ("gaps", "gap_sum_ms", "gap_answers", "gap_cv_sum")
"""The columns of what `Numbers.cadences` holds."""


def tabulate(records: Sequence[AcceptanceRecord], k: int) -> FloatArray:
    """Return one row of sums per record, [records, columns of k]; all records are of that K."""
    if not records:
        return np.zeros((0, columns_of(k).width))
    return rows_of(numbers_of(records, k))


def rows_of(numbers: Numbers) -> FloatArray:
    """Return one row of sums per record, [records, columns of the numbers' K]."""
    columns = columns_of(numbers.k)
    rows = np.zeros((len(numbers.steps), columns.width))
    for name, values in _scalars(numbers).items():
        rows[:, columns[name]] = values
    rows[:, columns.slice("histogram")] = numbers.histograms
    if numbers.k:
        _from_full_drafts(numbers, rows, columns)
        _from_tables(numbers, rows, columns)
        if numbers.step_lists is not None:
            _from_steps(numbers.step_lists, rows, columns)
    return rows


def _scalars(n: Numbers) -> dict[str, FloatArray]:
    stepping = n.steps > 0
    streamed = (n.chunks > 0) & ~np.isnan(n.completion_tokens)
    counted = ~(n.steps_estimated | n.accepted_estimated) & ~np.isnan(n.completion_tokens)
    explained = n.accepted + n.steps
    gap = np.where(counted, n.completion_tokens - explained, 0)
    mean = np.divide(n.accepted, n.steps, out=np.zeros_like(n.steps), where=stepping) + stepping
    found = {
        "records": np.ones_like(n.steps),
        "requests": n.requests,
        "requests_unknown": np.isnan(n.requests),
        "steps": n.steps,
        "steps_estimated": n.steps_estimated,
        "accepted": n.accepted,
        "accepted_estimated": n.accepted_estimated,
        "drafted": n.drafted,
        "drafted_unknown": np.isnan(n.drafted),
        "drafted_nominal": n.drafted_nominal,
        "histogram_unknown": ~n.histogram_known,
        "covered_steps": np.where(np.isnan(n.decode_steps), 0, n.steps),
        "decode_steps": n.decode_steps,
        "completion_tokens": np.where(counted, n.completion_tokens, 0),
        "explained_tokens": np.where(counted, explained, 0),
        "completion_records": counted,
        "more_tokens_records": gap > 0,
        "fewer_tokens_records": gap < 0,
        "more_tokens": np.maximum(gap, 0),
        "fewer_tokens": np.maximum(-gap, 0),
        "stepping_records": stepping,
        "mean_sum": mean,
        "accepted_accepted": n.accepted * n.accepted,
        "accepted_steps": n.accepted * n.steps,
        "steps_steps": n.steps * n.steps,
        "repetitive": n.repetitive,
        "text_seen": n.text_seen,
        "chunks": np.where(streamed, n.chunks, 0),
        "chunked_tokens": np.where(streamed, n.completion_tokens, 0),
        "prompt_tokens": n.prompt_tokens,
        "cached_tokens": n.cached_tokens,
        "cached_records": ~np.isnan(n.cached_tokens),
    }
    if n.cadences is not None:
        found |= zip(_CADENCE, n.cadences.T, strict=True)
    return {name: np.nan_to_num(values) for name, values in found.items()}


def _from_full_drafts(numbers: Numbers, rows: FloatArray, columns: Columns) -> None:
    # D = K * S says that every single draft was K long.
    full = (
        numbers.histogram_known
        & ~numbers.drafted_nominal
        & (numbers.drafted == columns.k * numbers.steps)
    )
    tails = np.cumsum(numbers.histograms[full][:, ::-1], axis=1)[:, ::-1]
    rows[full, columns.slice("at_risk")] = tails[:, :-1]
    rows[full, columns.slice("passed")] = tails[:, 1:]
    rows[full, columns["length_known_steps"]] = tails[:, 0]


def _from_tables(numbers: Numbers, rows: FloatArray, columns: Columns) -> None:
    if not len(numbers.tabled):
        return
    by_accepted = _at_least(numbers.tables, axis=2)  # [m, d, steps with a >= r]
    reach = _at_least(by_accepted, axis=1)  # [m, d >= r, a >= r']
    positions = np.arange(1, columns.k + 1)
    rows[numbers.tabled, columns.slice("at_risk")] = reach[:, positions, positions - 1]
    rows[numbers.tabled, columns.slice("passed")] = reach[:, positions, positions]
    rows[numbers.tabled, columns["length_known_steps"]] = numbers.tables.sum(axis=(1, 2))


def _at_least(counts: FloatArray, axis: int) -> FloatArray:
    return np.flip(np.cumsum(np.flip(counts, axis), axis), axis)


def _from_steps(lists: StepLists, rows: FloatArray, columns: Columns) -> None:
    _bands_from_steps(lists, rows, columns)
    # The others are known from their histogram already.
    short = rows[lists.places, columns["length_known_steps"]] != lists.lengths
    if not short.any():
        return
    where = lists.places[short]
    rows[where, columns["length_known_steps"]] = lists.lengths[short]
    here = short[lists.owner]
    a, d, owner = lists.accepted[here], lists.drafted[here], lists.owner[here]
    for position in range(1, columns.k + 1):
        for name, met in (
            ("at_risk", (a >= position - 1) & (d >= position)),
            ("passed", a >= position),
        ):
            counts = np.bincount(owner[met], minlength=len(short))
            rows[where, columns.slice(name).start + position - 1] = counts[short]


def _bands_from_steps(lists: StepLists, rows: FloatArray, columns: Columns) -> None:
    # The prefill gave the first token; each step emits its accepted tokens and one more.
    after = np.cumsum(lists.accepted + 1)
    first = np.cumsum(lists.lengths) - lists.lengths
    emitted_before = np.concatenate([[0], after])[first]
    start = after - lists.accepted - emitted_before[lists.owner]
    bands = len(OUTPUT_BANDS)
    cell = lists.owner * bands + np.searchsorted(OUTPUT_BANDS[1:], start, side="right")
    for name, weights in (("band_steps", None), ("band_accepted", lists.accepted)):
        sums = np.bincount(cell, weights=weights, minlength=len(lists.places) * bands)
        rows[lists.places, columns.slice(name)] = sums.reshape(-1, bands)
