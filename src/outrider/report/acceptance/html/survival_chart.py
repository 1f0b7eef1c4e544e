"""The chart of survival: how far acceptance reaches into the draft."""

from collections.abc import Iterator, Sequence

from outrider.acceptance.estimate import Estimate
from outrider.acceptance.figures import PositionFigures
from outrider.report.acceptance.html.cells import PERCENT
from outrider.report.acceptance.html.chart_parts import (
    Chart,
    Datum,
    Series,
    any_interval,
    axis_of,
    band,
    chart_spec,
    colours,
    ends_of,
    intervals,
    line,
    names_of,
    percent,
    points,
    shapes,
    tip,
    whole_axis,
)
from outrider.report.cells import interval_text, number

PRODUCT_LIMIT = "product limit"
NAIVE = "naive ratio"
MOST_BANDED = 3
"""More intervals on top of each other could not be told apart; the tables have them."""


def survival_charts(shown: Sequence[Series]) -> Iterator[Chart]:
    """Yield one chart for each K, with all its segments together."""
    known = [series for series in shown if series.segment.figures.positions]
    for k in sorted({series.segment.figures.k or 0 for series in known}):
        yield _survival_chart(k, [each for each in known if (each.segment.figures.k or 0) == k])


def _survival_chart(k: int, members: Sequence[Series]) -> Chart:
    data = [row for series in members for row in _rows(series)]
    x = whole_axis("position", "draft position r", max(row["position"] for row in data))
    y = axis_of(
        "value",
        "quantitative",
        "share of steps that reach it",
        axis={"format": "%", "tickCount": 5},
        scale={"domain": [0, 1]},
    )
    dash = {
        "field": "estimator",
        "scale": {"domain": [PRODUCT_LIMIT, NAIVE], "range": [[1, 0], [5, 4]]},
        "legend": None,
    }
    tooltip = [
        tip("segment", "segment"),
        tip("position", "draft position"),
        tip("text", "survival"),
        tip("estimator", "estimator"),
        tip("risk", "steps at risk"),
    ]
    colour = colours(members)
    marked = points(x, y, colour, tooltip, shape=shapes(members))
    banded = len(members) <= MOST_BANDED
    layers = [
        *(intervals(data, band(x, y, colour)) if banded else []),
        line(x, y, colour, strokeDash=dash),
        {**marked, "transform": [{"filter": "datum.point"}]},
    ]
    return Chart(
        title=f"K = {k}" if k else "K unknown",
        gist=f"Survival by draft position. {' '.join(map(_gist, members))}",
        spec=chart_spec(data, height=270, layer=layers),
        series=names_of(members),
        reading=_reading(data, banded=banded),
    )


def _rows(series: Series) -> Iterator[Datum]:
    figures = series.segment.figures
    tail = figures.survival_estimator == "tail"
    main = NAIVE if tail else PRODUCT_LIMIT
    start = {"segment": series.name, "position": 0, "value": 1.0, "point": False}
    certain = {"low": 1.0, "high": 1.0} if _bounded(series) else {}
    yield {**start, **certain, "estimator": main}
    for each in figures.positions:
        if each.survival.value is not None:
            yield {**_row(series, each, each.survival), "estimator": main, "point": True}
    if not tail and any(each.naive.value != each.survival.value for each in figures.positions):
        yield {**start, "estimator": NAIVE}
        for each in figures.positions:
            if each.naive.value is not None:
                row = _row(series, each, Estimate(each.naive.value, None, None))
                yield {**row, "estimator": NAIVE, "point": False}


def _bounded(series: Series) -> bool:
    return any(each.survival.interval for each in series.segment.figures.positions)


def _row(series: Series, position: PositionFigures, figure: Estimate) -> Datum:
    return {
        "segment": series.name,
        "position": position.position,
        "risk": number(position.at_risk),
        "text": interval_text(figure, 1, scale=PERCENT, unit=" %"),
        **ends_of(figure),
    }


def _reading(data: Sequence[Datum], *, banded: bool) -> str:
    used = {row["estimator"] for row in data}
    parts = [
        "solid: product limit" if PRODUCT_LIMIT in used else "",
        "dashed: naive tail ratio" if NAIVE in used else "",
        "shaded: 95 % interval" if banded and any_interval(data) else "",
    ]
    words = "; ".join(part for part in parts if part)
    return f"{words[:1].upper()}{words[1:]}."


def _gist(series: Series) -> str:
    known = [
        (each.position, each.survival.value)
        for each in series.segment.figures.positions
        if each.survival.value is not None
    ]
    if not known:
        return f"{series.name}: unknown."
    (first, share), (last, least) = known[0], known[-1]
    text = f"{series.name}: {percent(share)} reach position {first}"
    return f"{text}." if first == last else f"{text}, {percent(least)} position {last}."
