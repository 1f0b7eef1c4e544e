"""Earlier reports that a new one is held against."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec

from outrider.errors import InvalidSetting
from outrider.records.validation import MOST_COUNTED
from outrider.report.acceptance.as_json import SCHEMA

_LARGEST = 64 << 20
"""Bytes of a file, or of a pipe that may never end."""

_Length = Annotated[float, msgspec.Meta(ge=1, le=MOST_COUNTED)]
_Share = Annotated[float, msgspec.Meta(ge=0, le=1)]
_Count = Annotated[int, msgspec.Meta(ge=0, le=MOST_COUNTED)]


class BaselineSegment(msgspec.Struct):
    """One segment as a stored report has it; what older reports lack is empty."""

    name: str
    segment: dict[str, str | int | None]
    mean_acceptance_length: _Length | None
    mean_acceptance_length_ci: tuple[_Length, _Length] | None
    naive_survival: Sequence[_Share | None] = ()
    also: dict[str, list[str | int | None]] = {}
    steps: _Count = 0
    clusters: _Count = 0

    def __post_init__(self) -> None:
        """Refuse what no report has: an interval that ends before it begins, a K that is none."""
        ci, k = self.mean_acceptance_length_ci, self.segment.get("k")
        if ci is not None and ci[0] > ci[1]:
            raise ValueError("the interval ends before it begins")
        if k is not None and not (isinstance(k, int) and len(self.naive_survival) <= k):
            raise ValueError("K is no number of positions")


class Baseline(msgspec.Struct):
    """What of a stored report others can be held against."""

    schema: Literal["outrider.report/1"]
    segments: list[BaselineSegment]
    whole: list[BaselineSegment]

    @property
    def entries(self) -> tuple[BaselineSegment, ...]:
        """All segments, those without a split first."""
        return (*self.whole, *self.segments)


def read_baseline(option: str, name: str, what: str) -> Baseline:
    """Read the report in the JSON file `name`, which `option` got.

    Raises InvalidSetting for anything else; `what` says what the option takes.
    """
    path = Path(name)
    try:
        with path.open("rb") as file:
            content = file.read(_LARGEST)
    except (OSError, ValueError) as error:
        cause = str(error.strerror if isinstance(error, OSError) else error)
        raise InvalidSetting(f"{option} {name}: {cause.lower()}", what, "check the path") from error
    try:
        return msgspec.json.decode(content, type=Baseline)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise InvalidSetting(
            f"{option} {name}: not a report of schema {SCHEMA}", what, "write a new baseline"
        ) from error


def segment_key(values: Mapping[str, Any]) -> str:
    """Return what two reports know the same segment by."""
    return json.dumps(dict(values), sort_keys=True)
