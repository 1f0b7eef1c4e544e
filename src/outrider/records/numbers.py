"""What many records of one K say, as arrays to compute with."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain
from operator import attrgetter

import numpy as np
import numpy.typing as npt

from outrider.acceptance.columns import WIDTH_OF_UNKNOWN_K
from outrider.acceptance.intervals import FloatArray
from outrider.records.reading import AcceptanceRecord

IntArray = npt.NDArray[np.int64]
BoolArray = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class StepLists:
    """The lengths of each step of the records at `places` [m], `lengths` [m] of them each.

    `accepted` and `drafted` hold all of them in the records' order, and `owner` the place among the
    m of each.
    """

    places: IntArray
    lengths: IntArray
    owner: IntArray
    accepted: IntArray
    drafted: IntArray

    @classmethod
    def of(
        cls,
        places: Sequence[int] | IntArray,
        accepted: Sequence[Sequence[int]],
        drafted: Sequence[Sequence[int]],
    ) -> "StepLists":
        """Flatten the lists; ValueError for a length that is not 0 to 255."""
        lengths = np.array([len(each) for each in drafted], dtype=np.int64)
        return cls(
            places=np.asarray(places, dtype=np.int64),
            lengths=lengths,
            owner=np.repeat(np.arange(len(lengths)), lengths),
            accepted=_flat(accepted),
            drafted=_flat(drafted),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Numbers:
    """One entry per record [n] in every array; NaN stands for unknown.

    `histograms` [n, K + 1] are zeros where `histogram_known` is False, and of a fixed width where K
    is 0, unknown. `tables` [m, K + 1, K + 1] count the steps of the records at `tabled` [m] by
    drafted and accepted length. `cadences` [n, 4] hold `CADENCE` in its order, zeros where a record
    does not tell, and are None where none does.
    """

    k: int
    requests: FloatArray
    steps: FloatArray
    accepted: FloatArray
    drafted: FloatArray
    decode_steps: FloatArray
    prompt_tokens: FloatArray
    completion_tokens: FloatArray
    cached_tokens: FloatArray
    chunks: FloatArray
    steps_estimated: BoolArray
    accepted_estimated: BoolArray
    drafted_nominal: BoolArray
    repetitive: BoolArray
    text_seen: BoolArray
    histogram_known: BoolArray
    histograms: FloatArray
    step_lists: StepLists | None
    tabled: IntArray
    tables: FloatArray
    cadences: FloatArray | None = None


def numbers_of(records: Sequence[AcceptanceRecord], k: int) -> Numbers:
    """Return the numbers of at least one record; all are valid and of that K."""
    numbers = np.array([_numbers(record) for record in records], dtype=np.float64).T
    marks = np.array([_marks(record) for record in records], dtype=bool).T
    listed = [place for place, each in enumerate(records) if each.per_step_drafted is not None]
    tabled = [place for place, each in enumerate(records) if each.draft_table is not None]
    return Numbers(
        k=k,
        **dict(zip(_NUMBERS, numbers, strict=True)),
        **dict(zip(_MARKS, marks, strict=True)),
        histogram_known=np.array([each.histogram is not None for each in records]),
        histograms=_histograms(records, k),
        step_lists=StepLists.of(
            listed,
            [records[place].per_step_accepted or () for place in listed],
            [records[place].per_step_drafted or () for place in listed],
        )
        if listed
        else None,
        tabled=np.array(tabled, dtype=np.int64),
        tables=np.array([records[place].draft_table for place in tabled], dtype=np.float64),
        cadences=_cadences(records),
    )


_NUMBERS = (
    "requests",
    "steps",
    "accepted",
    "drafted",
    "decode_steps",
    "prompt_tokens",
    "completion_tokens",
    "cached_tokens",
    "chunks",
)
_numbers = attrgetter(*_NUMBERS)

CADENCE = ("gaps", "gap_sum_ms", "answers", "gap_cv_sum")
_NO_GAPS = (0,) * len(CADENCE)
_cadence = attrgetter(*CADENCE)

_MARKS = ("steps_estimated", "accepted_estimated", "drafted_nominal", "repetitive", "text_seen")


def _marks(record: AcceptanceRecord) -> tuple[bool, ...]:
    return (
        record.steps_basis == "estimated",
        record.accepted_basis == "estimated",
        record.drafted_basis == "nominal",
        record.repetitive is True,
        record.repetitive is not None,
    )


def _cadences(records: Sequence[AcceptanceRecord]) -> FloatArray | None:
    if all(record.cadence is None for record in records):
        return None
    return np.array(
        [_NO_GAPS if record.cadence is None else _cadence(record.cadence) for record in records],
        dtype=np.float64,
    )


def _histograms(records: Sequence[AcceptanceRecord], k: int) -> FloatArray:
    width = histogram_width(k)
    nothing = (0,) * width
    rows = [nothing if each.histogram is None else each.histogram for each in records]
    if not k:
        rows = [(*row, *nothing[len(row) :]) for row in rows]
    return np.fromiter(chain.from_iterable(rows), np.float64, len(rows) * width).reshape(-1, width)


def histogram_width(k: int) -> int:
    """Return how many entries a histogram has, K + 1 unless K is 0, unknown."""
    return k + 1 if k else WIDTH_OF_UNKNOWN_K


def _flat(lists: Sequence[Sequence[int]]) -> IntArray:
    # Lengths of a draft fit a byte, and bytes are the fastest way from a list to an array.
    return np.frombuffer(b"".join(map(bytes, lists)), np.uint8).astype(np.int64)
