"""What reading a source comes to: an acceptance record, or the reason that there is none."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from types import MappingProxyType
from typing import Literal, NamedTuple, TypeAlias

import msgspec

TagValue: TypeAlias = str | int | float | bool
Basis: TypeAlias = Literal["counted", "nominal", "estimated"]
"""How a number came about: by counting, as K times the steps, or by arithmetic from others."""


class Place(NamedTuple):
    """Where something was read: the source as the user named it, and its line from 1, if any."""

    source: str
    line: int | None = None


class Scope(StrEnum):
    """What a record covers. Records of different scopes may hold the same steps: never add them."""

    REQUEST = "request"
    """One answer."""
    INTERVAL = "interval"
    """All answers of a server between two scrapes of its counters."""
    LOG = "log"
    """All answers of a server in one interval of its log."""
    BENCHMARK = "benchmark"
    """All answers to one benchmark."""
    SERVER = "server"
    """All answers of a server since it started."""


class Cadence(msgspec.Struct, frozen=True, gc=False):
    """The gaps between the events of one or more answers; the wait for the first is none.

    `gaps` counts them, `gap_sum_ms` is their sum and `longest_gap_ms` the longest. `answers` are
    those with at least two gaps of their own, and `gap_cv_sum` adds up the coefficient of variation
    within each: population standard deviation over mean. `answers` is 0 where a source tells the
    gaps of all answers together.
    """

    answers: int
    gap_cv_sum: float
    gaps: int
    gap_sum_ms: float
    longest_gap_ms: float


# A frozen dataclass of this size takes ten times as long to make, and millions are made.
class AcceptanceRecord(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """What one answer, interval or server says of its speculation, whichever engine it was.

    None means that the source does not say, which is never 0. `histogram` is (H_0 ... H_K), of
    length k + 1. `steps`, `accepted` and `drafted` are S, A and D of the design's vocabulary.
    `per_step_accepted` and `per_step_drafted` hold one length per verification step; `draft_table`
    [d][a] counts steps by drafted and accepted length, each 0 to K, and serves where the lists are
    not given. `requests` is how many answers the record stands for. `decode_steps` are all target
    passes after the prefill, those without a draft included. `chunks` counts the events of a stream
    that carried text, and `cadence` is how evenly they came. Records with the same `cluster` are
    resampled together; None: each by itself. `snapshot` names the counters that a SERVER record is
    a state of, so that two states of the same counters are never added. `repetitive` says whether
    the text repeats itself like the output of a corrupted run. `tags` are what else is known, to
    make segments by.
    """

    engine: str
    scope: Scope = Scope.REQUEST
    id: str | None = None
    snapshot: str | None = None
    cluster: str | None = None
    requests: int | None = 1
    k: int | None = None
    histogram: Sequence[int] | None = None
    steps: int | None = None
    steps_basis: Basis = "counted"
    accepted: int | None = None
    accepted_basis: Basis = "counted"
    drafted: int | None = None
    drafted_basis: Basis = "counted"
    per_step_accepted: Sequence[int] | None = None
    per_step_drafted: Sequence[int] | None = None
    draft_table: Sequence[Sequence[int]] | None = None
    decode_steps: int | None = None
    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    cached_tokens: int | None = None
    chunks: int | None = None
    cadence: Cadence | None = None
    repetitive: bool | None = None
    tags: Mapping[str, TagValue] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class NoMetrics:
    """A sound answer that says nothing of speculation, and the explanation that fits it."""

    reason: str


@dataclass(frozen=True, slots=True)
class BadRecord:
    """Something that cannot be used, and why."""

    reason: str


Reading: TypeAlias = AcceptanceRecord | NoMetrics | BadRecord


class InvalidRecord(ValueError):
    """Numbers that no run can produce; the message is the reason to list."""
