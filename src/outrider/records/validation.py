"""Whether the numbers of a record can be true together, asked once where records come in."""

from collections.abc import Sequence
from operator import gt, mul
from typing import Any

import msgspec

from outrider.acceptance.columns import WIDTH_OF_UNKNOWN_K
from outrider.records.reading import AcceptanceRecord, Cadence, InvalidRecord

MOST_COUNTED = 2**53
"""Beyond it sums of floats lose single counts, and no run counts that far."""

LONGEST_DRAFT = 255

FEWEST_GAPS = 2
"""A single gap is as even as any."""

_ROUNDING = 1e-9

_OPTIONAL_COUNTS = (
    "drafted",
    "requests",
    "completion_tokens",
    "prompt_tokens",
    "cached_tokens",
    "decode_steps",
    "chunks",
)
_NO_COUNTS = "neither steps nor accepted tokens can be told from it"


def validated(record: AcceptanceRecord) -> AcceptanceRecord:
    """Return the record with S and A known and its histogram K + 1 long, or raise InvalidRecord.

    What one number says of another is checked: the histogram's sums against S and A, D against A
    and K * S, the lists of steps against all of them.
    """
    # A histogram is made K + 1 long, so K has to be sane before.
    _check_k(record.k)
    if record.histogram is not None:
        record = _against_histogram(record, record.histogram)
    steps, accepted = record.steps, record.accepted
    if steps is None or accepted is None:
        raise InvalidRecord(_NO_COUNTS)
    _check_count("steps", steps)
    _check_count("accepted", accepted)
    for name in _OPTIONAL_COUNTS:
        value = getattr(record, name)
        if value is not None:
            _check_count(name, value)
    _check_totals(record, steps, accepted)
    if record.cadence is not None:
        _check_cadence(record.cadence)
    if record.per_step_accepted is not None or record.per_step_drafted is not None:
        _check_steps(record)
    if record.draft_table is not None:
        _check_table(record)
    return record


def _check_k(k: object) -> None:
    if k is not None and not (type(k) is int and 1 <= k <= LONGEST_DRAFT):
        raise InvalidRecord(f"K is {_short(k)}; expected 1 to {LONGEST_DRAFT}")


def _check_totals(record: AcceptanceRecord, steps: int, accepted: int) -> None:
    k, drafted = record.k, record.drafted
    most = None if k is None or record.steps_basis == "estimated" else k * steps
    if most is not None and accepted > most:
        raise InvalidRecord(f"{accepted} accepted in {steps} steps of at most {k}")
    if drafted is not None:
        if accepted > drafted and record.accepted_basis != "estimated":
            raise InvalidRecord(f"{accepted} accepted of {drafted} drafted")
        if most is not None and drafted > most:
            raise InvalidRecord(f"{drafted} drafted in {steps} steps of at most {k}")
    if record.decode_steps is not None and record.decode_steps < steps:
        raise InvalidRecord(f"{steps} verification steps among {record.decode_steps} decode steps")


def _against_histogram(record: AcceptanceRecord, histogram: Sequence[int]) -> AcceptanceRecord:
    try:
        steps, accepted = sum(histogram), sum(map(mul, histogram, range(len(histogram))))
        least = min(histogram)
    except (TypeError, ValueError, OverflowError):
        raise InvalidRecord(f"histogram is {_short(histogram)}; expected counts") from None
    # The sum of bools is an int, and True is no count.
    if least < 0 or {*map(type, histogram)} != {int}:
        raise InvalidRecord(f"histogram is {_short(histogram)}; expected whole numbers from 0")
    changes: dict[str, Any] = {}
    for name, told, summed in (
        ("steps", record.steps, steps),
        ("accepted", record.accepted, accepted),
    ):
        if told is None:
            changes[name] = summed
        elif told != summed:
            raise InvalidRecord(f"the histogram sums to {summed} {name}, the record says {told!r}")
    k = record.k
    expected = WIDTH_OF_UNKNOWN_K if k is None else k + 1
    if len(histogram) > expected:
        if any(histogram[expected:]):
            raise InvalidRecord(f"the histogram has {len(histogram)} entries for K = {k}")
        changes["histogram"] = tuple(histogram[:expected])
    elif k is not None and len(histogram) < expected:
        changes["histogram"] = (*histogram, *(0,) * (expected - len(histogram)))
    return msgspec.structs.replace(record, **changes) if changes else record


def _check_count(name: str, value: object) -> None:
    # A bool is an int to Python, and True is no count.
    if type(value) is not int or not 0 <= value <= MOST_COUNTED:
        raise InvalidRecord(f"{name} is {_short(value)}; expected a whole number from 0 to 2^53")


def _check_steps(record: AcceptanceRecord) -> None:
    accepted, drafted = record.per_step_accepted, record.per_step_drafted
    if accepted is None or drafted is None:
        raise InvalidRecord("the lengths of each step are given for only one of drafted, accepted")
    try:
        counts = len(accepted), len(drafted)
        lengths = bytes(accepted)
        bytes(drafted)
        beyond = any(map(gt, accepted, drafted))
    except (TypeError, ValueError):
        raise InvalidRecord(
            f"the lengths of each step are not all whole numbers of 0 to {LONGEST_DRAFT}"
        ) from None
    if counts != (record.steps, record.steps):
        raise InvalidRecord(
            f"{counts[0]} accepted and {counts[1]} drafted lengths for {record.steps} steps"
        )
    if beyond:
        raise InvalidRecord("a step accepted more than it drafted")
    if record.k is not None and max(drafted, default=0) > record.k:
        raise InvalidRecord(f"a step drafted {max(drafted)} with K = {record.k}")
    for name, listed, told in (
        ("accepted", sum(accepted), record.accepted),
        ("drafted", sum(drafted), record.drafted),
    ):
        if told is not None and listed != told:
            raise InvalidRecord(f"the steps sum to {listed} {name}, the record says {told}")
    for length, steps in enumerate(record.histogram or ()):
        if lengths.count(length) != steps:
            raise InvalidRecord(
                f"{lengths.count(length)} steps accepted {length}, the histogram says {steps}"
            )


def _check_table(record: AcceptanceRecord) -> None:
    table, k = record.draft_table or (), record.k
    try:
        fits = k is not None and [len(row) for row in table] == [k + 1] * (k + 1)
    except TypeError:
        fits = False
    if not fits:
        raise InvalidRecord(f"the table of steps by draft length does not fit K = {k}")
    for drafted, row in enumerate(table):
        for steps in row:
            _check_count("a cell of the table by draft length", steps)
        if any(row[drafted + 1 :]):
            raise InvalidRecord("a step accepted more than it drafted")
    by_accepted = [sum(column) for column in zip(*table, strict=True)]
    for name, summed, told in (
        ("steps", sum(by_accepted), record.steps),
        ("accepted", sum(map(mul, by_accepted, range(len(table)))), record.accepted),
        ("drafted", sum(map(mul, map(sum, table), range(len(table)))), record.drafted),
    ):
        if told is not None and summed != told:
            raise InvalidRecord(
                f"the table by draft length sums to {summed} {name}, the record says {told}"
            )


def _check_cadence(cadence: Cadence) -> None:
    _check_count("gaps", cadence.gaps)
    _check_count("answers with gaps", cadence.answers)
    for name in ("gap_cv_sum", "gap_sum_ms", "longest_gap_ms"):
        value = getattr(cadence, name)
        # A comparison is False for what is not a number, too.
        if type(value) not in {int, float} or not 0 <= value <= MOST_COUNTED:
            raise InvalidRecord(f"{name} is {_short(value)}; expected a number from 0")
    longest, total, gaps = cadence.longest_gap_ms, cadence.gap_sum_ms, cadence.gaps
    if not gaps or gaps < FEWEST_GAPS * cadence.answers:
        raise InvalidRecord(f"{cadence.answers} answers with gaps that vary have {gaps} gaps")
    if not longest <= total * (1 + _ROUNDING) or not total <= gaps * longest * (1 + _ROUNDING):
        raise InvalidRecord(f"the longest of {gaps} gaps is {longest} ms, their sum {total} ms")


def _short(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 40 else f"{text[:37]}..."  # noqa: PLR2004
