"""Reading sources, and reading the report on them."""

import io
from collections.abc import Callable, Sequence
from typing import TypeAlias

import httpx2

from outrider.acceptance.estimate import Estimate
from outrider.acceptance.flags import Flag
from outrider.acceptance.reconciliation import Identity
from outrider.records.adapters.registry import ADAPTERS
from outrider.records.collecting import Collection, Collector
from outrider.records.sources.reader import read
from outrider.report.acceptance.document import AcceptanceReport, SegmentReport
from outrider.report.acceptance.expected.asked import read_expected
from outrider.report.acceptance.expected.expectation import Cause, Expectation
from outrider.report.acceptance.expected.holding import held_against

Reporter: TypeAlias = Callable[..., AcceptanceReport]


def collect(*names: str) -> Collection:
    collector = Collector()
    with httpx2.Client() as http:
        for place, reading in read(names, ADAPTERS, stdin=io.BytesIO(), http=http):
            collector.add(place, reading)
    return collector.finish()


def only(found: AcceptanceReport) -> SegmentReport:
    [segment] = found.whole or found.segments
    assert found.records.bad == ()
    return segment


def flags(segment: SegmentReport) -> dict[str, Flag]:
    return {flag.code: flag for flag in segment.flags}


def identities(segment: SegmentReport) -> dict[str, Identity]:
    return {identity.name: identity for identity in segment.reconciliation}


def values(figures: Sequence[Estimate]) -> list[float]:
    return [figure.value for figure in figures if figure.value is not None]


def survival(segment: SegmentReport) -> list[float]:
    return values([position.survival for position in segment.figures.positions])


def conditional(segment: SegmentReport) -> list[float]:
    return values([position.conditional for position in segment.figures.positions])


def expectation(found: AcceptanceReport, wanted: str) -> Expectation:
    held = only(held_against(found, read_expected(wanted))).expected
    assert held is not None
    return held


def causes(held: Expectation) -> dict[str, Cause]:
    return {cause.name: cause for cause in held.causes}
