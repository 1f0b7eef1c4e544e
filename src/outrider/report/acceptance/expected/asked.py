"""What --expect got: a figure with its conditions, or an earlier report."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from math import isfinite
from typing import Protocol

from outrider.acceptance.expectation import ExpectedMean
from outrider.errors import InvalidSetting
from outrider.report.acceptance.baseline import (
    Baseline,
    BaselineSegment,
    read_baseline,
    segment_key,
)
from outrider.report.acceptance.expected.conditions import CONDITIONS, OTHER_NAMES

WHAT = (
    "a mean acceptance length of at least 1, the target's own token included, with conditions like"
    " 5.5,k=7,engine=sglang, or a report that `outrider report --format json` wrote"
)
_DECIMAL = re.compile(r"\d+(?:\.(\d*))?", re.ASCII)


@dataclass(frozen=True, slots=True)
class Figure:
    """An expected M and its conditions; a condition may have several values, where several met.

    `stored`: it was measured like the figures of this report, so that both count alike.
    """

    mean: ExpectedMean
    conditions: Mapping[str, tuple[str, ...]]
    source: str
    stored: bool = False


class Asked(Protocol):
    """What tells the expected figure of a segment."""

    @property
    def source(self) -> str:
        """What was typed."""
        ...

    def of(self, values: Mapping[str, str | int | None]) -> Figure | None:
        """Return the figure to hold the segment with these values against, if there is one."""
        ...


@dataclass(frozen=True, slots=True)
class Typed:
    """One figure for all segments."""

    figure: Figure

    @property
    def source(self) -> str:
        """What was typed."""
        return self.figure.source

    def of(self, values: Mapping[str, str | int | None]) -> Figure | None:  # noqa: ARG002
        """Return the figure."""
        return self.figure


@dataclass(frozen=True, slots=True)
class Stored:
    """The figures of an earlier report."""

    baseline: Baseline
    source: str

    def of(self, values: Mapping[str, str | int | None]) -> Figure | None:
        """Return the figure of the same segment, else of the only one under other conditions.

        A segment of another engine, K or model stands in where it alone has the same other values,
        since what these conditions change is what is asked for.
        """
        known = [each for each in self.baseline.entries if each.mean_acceptance_length is not None]
        same = [each for each in known if segment_key(each.segment) == segment_key(values)]
        alike = same or [
            each
            for each in known
            if _without_conditions(each.segment) == _without_conditions(values)
        ]
        if not same and len(alike) > 1:
            alike = [each for each in alike if each.segment.get("k") == values.get("k")]
        if len(alike) != 1 and not same:
            return None
        return _stored_figure(alike[0], self.source)


def read_expected(text: str) -> Asked:
    """Read what --expect got.

    Raises InvalidSetting for what is neither a figure of at least 1 with known conditions nor a
    stored report.
    """
    first, *rest = text.split(",")
    try:
        value = float(first)
    except ValueError:
        return Stored(read_baseline("--expect", text, WHAT), text)
    if not (isfinite(value) and value >= 1):
        raise InvalidSetting(
            f"--expect {text}", WHAT, "an acceptance rate is another figure: give the length"
        )
    conditions = dict(_condition(part, text) for part in rest)
    if len(conditions) < len(rest):
        raise InvalidSetting(f"--expect {text}", "each condition once", "leave one of them out")
    k = int(conditions["k"]) if "k" in conditions else None
    half = _rounding(first.strip())
    if k is not None and value - half > k + 1:
        raise InvalidSetting(
            f"--expect {text}: no step at K = {k} gives more than {k + 1} tokens",
            "a figure of at most K + 1",
            "check the K that the figure was measured at",
        )
    mean = ExpectedMean(value, value - half, value + half, k)
    told = {name: (value,) for name, value in conditions.items()}
    return Typed(Figure(mean, told, text))


def _condition(part: str, text: str) -> tuple[str, str]:
    name, sign, value = (each.strip() for each in part.partition("="))
    key = name.lower().replace("-", "_")
    key = OTHER_NAMES.get(key, key)
    if not sign or key not in CONDITIONS:
        raise InvalidSetting(
            f"--expect {text}: {part.strip()!r}",
            f"NAME=VALUE with one of {', '.join(CONDITIONS)}",
            "tell what the figure's source tells, and leave out the rest",
        )
    condition = CONDITIONS[key]
    try:
        return key, condition.form(value)
    except ValueError as error:
        raise InvalidSetting(
            f"--expect {text}: {part.strip()!r}",
            f"{key} to be {condition.valid}",
            "correct it or leave it out",
        ) from error


def _rounding(text: str) -> float:
    """Return half a unit of the last decimal: a card's 5.5 may be anything from 5.45 to 5.55."""
    found = _DECIMAL.fullmatch(text)
    return 0.5 * 10.0 ** -len(found[1] or "") if found and found[1] else 0.0


def _without_conditions(values: Mapping[str, str | int | None]) -> dict[str, str | int | None]:
    return {name: value for name, value in values.items() if name not in (*CONDITIONS, "scope")}


def _stored_figure(entry: BaselineSegment, source: str) -> Figure:
    value = entry.mean_acceptance_length
    assert value is not None
    low, high = entry.mean_acceptance_length_ci or (value, value)
    survival = tuple(each for each in entry.naive_survival if each is not None)
    k = entry.segment.get("k")
    told = {
        name: tuple(str(each) for each in values if each is not None)
        for name, values in ({n: [v] for n, v in entry.segment.items()} | entry.also).items()
        if name in CONDITIONS
    }
    return Figure(
        ExpectedMean(
            value,
            min(low, value),
            max(high, value),
            k if isinstance(k, int) else None,
            survival if len(survival) == len(entry.naive_survival) else (),
        ),
        {name: values for name, values in told.items() if values},
        source if not entry.name else f"{source} ({entry.name})",
        stored=True,
    )
