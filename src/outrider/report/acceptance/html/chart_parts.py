"""What the page's charts are made of: layers, scales and texts of Vega-Lite specifications.

Colours are names of the page's style variables, so that light, dark and print restyle what is
drawn. Sources' texts only ever are data, never expressions or field names.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from outrider.acceptance.estimate import Estimate
from outrider.report.acceptance.document import SegmentReport
from outrider.report.acceptance.html.cells import PERCENT
from outrider.report.cells import number

Spec: TypeAlias = Mapping[str, Any]
Datum: TypeAlias = Mapping[str, Any]

SHAPES = ("circle", "square", "triangle-up", "diamond", "triangle-down", "cross")
MOST_CHARTED = len(SHAPES)
"""How many segments curves are drawn of: as many as can be told apart without colour."""

_KNOWN_INTERVAL = ({"filter": "isValid(datum.low)"},)


@dataclass(frozen=True, slots=True)
class Chart:
    """A chart: what it shows, the same in words, its specification, and whose curves it has.

    `series` are (place in the palette, name); `reading` tells what lines and shades are.
    """

    title: str
    gist: str
    spec: Spec
    series: tuple[tuple[int, str], ...] = ()
    reading: str = ""


@dataclass(frozen=True, slots=True)
class Series:
    """A segment with its place in the palette, which it keeps from chart to chart."""

    place: int
    name: str
    segment: SegmentReport

    @property
    def style(self) -> str:
        """Its colour."""
        return f"var(--series-{self.place + 1})"


def largest(segments: Sequence[SegmentReport], most: int = MOST_CHARTED) -> tuple[Series, ...]:
    """Return the `most` segments with the most steps, in their order, under distinct names."""
    by_steps = sorted(range(len(segments)), key=lambda place: -segments[place].figures.steps)
    chosen = [segments[place] for place in sorted(by_steps[:most])]
    names = [segment.name for segment in chosen]
    return tuple(
        Series(
            place,
            name if names.count(name) == 1 else f"{name} ({names[:place].count(name) + 1})",
            segment,
        )
        for place, (name, segment) in enumerate(zip(names, chosen, strict=True))
    )


def names_of(members: Sequence[Series]) -> tuple[tuple[int, str], ...]:
    """Return what the legend lists."""
    return tuple((each.place, each.name) for each in members)


def chart_spec(data: Sequence[Datum], *, height: int, **parts: Any) -> Spec:
    """Return a specification as wide as its place on the page; `height` in pixels."""
    return {
        "data": {"values": list(data)},
        "width": "container",
        "height": height,
        "autosize": {"type": "fit-x", "contains": "padding"},
        **parts,
    }


def axis_of(field: str, kind: str, title: str | None, **parts: Any) -> Spec:
    """Return the encoding of an axis."""
    return {"field": field, "type": kind, "title": title, **parts}


def whole_axis(field: str, title: str, most: int, **parts: Any) -> Spec:
    """Return the encoding of an axis of whole numbers up to `most`."""
    axis = {"tickMinStep": 1, "format": "d", "tickCount": min(most, 10)}
    return axis_of(field, "quantitative", title, axis=axis, **parts)


def tip(field: str, title: str, form: str = "") -> Spec:
    """Return one line of what is shown on hover, with a number format or as text."""
    if form:
        return {"field": field, "title": title, "type": "quantitative", "format": form}
    return {"field": field, "title": title, "type": "nominal"}


def fixed(value: str) -> Spec:
    """Return the encoding of a colour that is the same for all."""
    return {"value": value}


def colours(members: Sequence[Series]) -> Spec:
    """Return the encoding of the segments' colours."""
    return _by_segment(members, [each.style for each in members])


def shapes(members: Sequence[Series]) -> Spec:
    """Return the encoding of the segments' shapes."""
    return _by_segment(members, [SHAPES[each.place] for each in members])


def _by_segment(members: Sequence[Series], values: Sequence[str]) -> Spec:
    scale = {"domain": [each.name for each in members], "range": list(values)}
    return {"field": "segment", "type": "nominal", "scale": scale, "legend": None}


def band(x: Spec, y: Spec, colour: Spec) -> Spec:
    """Return the layer that shades intervals along a curve."""
    ends = {"y": {**y, "field": "low"}, "y2": {"field": "high"}}
    mark = {"type": "area", "opacity": 0.15}
    return {
        "transform": _KNOWN_INTERVAL,
        "mark": mark,
        "encoding": {"x": x, **ends, "color": colour},
    }


def bars(x: Spec, y: Spec, colour: Spec) -> Spec:
    """Return the layer of intervals as upright lines."""
    ends = {"y": {**y, "field": "low"}, "y2": {"field": "high"}}
    mark = {"type": "rule", "strokeWidth": 2, "opacity": 0.45}
    return {
        "transform": _KNOWN_INTERVAL,
        "mark": mark,
        "encoding": {"x": x, **ends, "color": colour},
    }


def lying_bars(x: Spec, y: Spec, colour: Spec) -> Spec:
    """Return the layer of intervals as lines across."""
    ends = {"x": {**x, "field": "low"}, "x2": {"field": "high"}}
    mark = {"type": "rule", "strokeWidth": 2}
    return {
        "transform": _KNOWN_INTERVAL,
        "mark": mark,
        "encoding": {**ends, "y": y, "color": colour},
    }


def line(x: Spec, y: Spec, colour: Spec, **encoding: Spec) -> Spec:
    """Return the layer of curves."""
    mark = {"type": "line", "strokeWidth": 2}
    return {"mark": mark, "encoding": {"x": x, "y": y, "color": colour, **encoding}}


def points(x: Spec, y: Spec, colour: Spec, tooltip: Sequence[Spec], **encoding: Spec) -> Spec:
    """Return the layer of points, which tell on hover what they are."""
    mark = {"type": "point", "filled": True, "size": 75, "opacity": 1}
    encoded = {"x": x, "y": y, "color": colour, "tooltip": tooltip, **encoding}
    return {"mark": mark, "encoding": encoded}


def ends_of(figure: Estimate) -> Datum:
    """Return the figure and the ends of its interval as data."""
    interval = figure.interval
    return {
        "value": figure.value,
        "low": None if interval is None else interval.low,
        "high": None if interval is None else interval.high,
    }


def percent(share: float) -> str:
    """Return a share of 0 to 1 in per cent."""
    return f"{number(PERCENT * share, 1)} %"


def intervals(data: Sequence[Datum], layer: Spec) -> tuple[Spec, ...]:
    """Return the layer that shows them where there are any; drawn of nothing it would warn."""
    return (layer,) if any_interval(data) else ()


def any_interval(data: Sequence[Datum]) -> bool:
    """Return whether some of the data have an interval to show."""
    return any(row.get("low") is not None for row in data)
