"""The report on acceptance, whatever the sources and whatever form it is read in."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from outrider.acceptance.draft_length import DraftLengthChoice
from outrider.acceptance.figures import SegmentFigures
from outrider.acceptance.flags import Flag
from outrider.acceptance.reconciliation import Identity
from outrider.records.segment_keys import SegmentValue
from outrider.report.acceptance.expected.expectation import Expectation
from outrider.report.acceptance.replay.findings import ReplayFindings
from outrider.report.definitions import Definition


@dataclass(frozen=True, slots=True)
class SegmentReport:
    """One segment: the values of its keys (scope, engine and k first), and all that it says.

    `name` is a short title made of the values that tell it from the other segments.
    `draft_length` is None without a step cost or where nothing can be said, `draft_length_reason`
    then tells why. `also` has the values of all further keys that its records tell, none of a key
    that was not kept. `expected` is None where nothing was expected.
    """

    name: str
    values: dict[str, SegmentValue]
    figures: SegmentFigures
    flags: tuple[Flag, ...]
    reconciliation: tuple[Identity, ...]
    draft_length: DraftLengthChoice | None
    draft_length_reason: str | None
    also: Mapping[str, tuple[SegmentValue, ...]] = field(default_factory=dict)
    expected: Expectation | None = None


@dataclass(frozen=True, slots=True)
class KeyVariation:
    """How much of the variation of M between records one key explains (0 to 1, adjusted).

    `groups` is its number of different values, `p_value` that of an F test.
    """

    key: str
    groups: int
    explained: float
    p_value: float


@dataclass(frozen=True, slots=True)
class Split:
    """The key that the report split by on its own, and how it and the others fared.

    `key` is None where no key explains enough; `text` says so in a sentence either way.
    """

    key: str | None
    tried: tuple[KeyVariation, ...]
    text: str


@dataclass(frozen=True, slots=True)
class BadRecordEntry:
    """One record that was skipped, with its place; `line` is None where the source has no lines."""

    source: str
    line: int | None
    reason: str


@dataclass(frozen=True, slots=True)
class RecordCounts:
    """What became of everything that was read: read = used + no metrics + bad.

    `no_metrics` counts sound answers by the explanation of why they say nothing of speculation.
    `bad` lists the first of `bad_count`. `verdict_withheld`: more than 5 % were bad.
    """

    read: int
    used: int
    no_metrics: dict[str, int]
    bad_count: int
    bad: tuple[BadRecordEntry, ...]
    verdict_withheld: bool


@dataclass(frozen=True, slots=True)
class AcceptanceReport:
    """Everything that the report says.

    `segments` are what the figures are given for; with a `split` these are its parts. `whole` are
    the same records without the split, one segment per scope, engine and K, and empty where
    `segments` are these already. `pooled` is all records as one segment, None where adding them
    would mean nothing: `pooled_refused` then says why. `verdict` is the report in one or two
    sentences. `step_cost` describes the cost that `draft_length` rests on. `replay` compares the
    settings of a replay, None where what is reported was measured.
    """

    sources: tuple[str, ...]
    verdict: str
    segments: tuple[SegmentReport, ...]
    whole: tuple[SegmentReport, ...]
    pooled: SegmentReport | None
    pooled_refused: str | None
    split: Split | None
    records: RecordCounts
    step_cost: str | None
    notes: tuple[str, ...]
    definitions: tuple[Definition, ...]
    replay: ReplayFindings | None = None
