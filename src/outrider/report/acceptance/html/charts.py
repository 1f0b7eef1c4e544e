"""The charts of the page as Vega-Lite specifications, each with its gist in words."""

from collections.abc import Iterator, Sequence
from math import ceil

from outrider.acceptance.draft_length import DraftLengthChoice
from outrider.report.acceptance.document import SegmentReport
from outrider.report.acceptance.html.chart_parts import (
    Chart,
    Datum,
    Series,
    Spec,
    any_interval,
    axis_of,
    band,
    bars,
    chart_spec,
    colours,
    ends_of,
    fixed,
    intervals,
    largest,
    line,
    lying_bars,
    names_of,
    percent,
    points,
    shapes,
    tip,
    whole_axis,
)
from outrider.report.acceptance.html.tables import band_name
from outrider.report.cells import interval_text

MOST_COMPARED = 16
"""How many segments are set side by side in one chart that still fits a screen."""


_ROW_HEIGHT = 42


def histogram_charts(shown: Sequence[Series]) -> Iterator[Chart]:
    """Show which share of the steps accepted how many tokens, all to the same scale."""
    known = [series for series in shown if _shares(series)]
    top = ceil(10 * max((max(_shares(series)) for series in known), default=0.0)) / 10
    for series in known:
        yield _histogram_chart(series, top)


def _shares(series: Series) -> list[float]:
    figures = series.segment.figures
    counts = figures.histogram if figures.steps else None
    return [steps / figures.steps for steps in counts or ()]


def _histogram_chart(series: Series, top: float) -> Chart:
    figures = series.segment.figures
    shares = _shares(series)
    data = [
        {"accepted": j, "steps": steps, "share": share}
        for j, (steps, share) in enumerate(zip(figures.histogram or (), shares, strict=True))
    ]
    share_axis = {"format": "%", "tickCount": 4}
    spec = chart_spec(
        data,
        height=170,
        mark={"type": "bar", "color": series.style, "cornerRadiusEnd": 2},
        encoding={
            "x": axis_of("accepted", "ordinal", "accepted tokens j"),
            "y": axis_of(
                "share",
                "quantitative",
                "share of steps",
                axis=share_axis,
                scale={"domain": [0, top]},
            ),
            "tooltip": [
                tip("accepted", "accepted tokens"),
                tip("steps", "steps", ","),
                tip("share", "share of steps", ".1%"),
            ],
        },
    )
    parts = ", ".join(f"{j}: {percent(share)}" for j, share in enumerate(shares))
    gist = f"Share of {figures.steps:,} steps by accepted tokens. {parts}."
    return Chart(series.name, gist, spec)


def comparison_chart(segments: Sequence[SegmentReport]) -> Chart | None:
    """Show M of the largest segments, one below the other, with intervals."""
    known = [each for each in segments if each.figures.mean_acceptance_length.value is not None]
    if len(known) < 2:  # noqa: PLR2004
        return None
    shown = largest(known, MOST_COMPARED)
    data = [
        {
            "segment": series.name,
            **ends_of(series.segment.figures.mean_acceptance_length),
            "text": interval_text(series.segment.figures.mean_acceptance_length, 2),
            "steps": series.segment.figures.steps,
        }
        for series in shown
    ]
    names = [series.name for series in shown]
    bare = {"labels": False, "ticks": False, "domain": False}
    y = axis_of("segment", "nominal", None, sort=names, axis=bare)
    x = axis_of(
        "value",
        "quantitative",
        "tokens per verification step, M",
        scale={"zero": False, "domainMin": 1, "nice": True},
        axis={"tickCount": 6},
    )
    colour = fixed("var(--series-1)")
    tooltip = [tip("segment", "segment"), tip("text", "M"), tip("steps", "steps", ",")]
    parts = "; ".join(f"{row['segment']}: {row['text']}" for row in data)
    return Chart(
        title="Mean acceptance length M with 95 % intervals",
        gist=f"Mean acceptance length M by segment. {parts}.",
        spec=chart_spec(
            data,
            height=_ROW_HEIGHT * len(data),
            layer=[
                *intervals(data, lying_bars(x, y, colour)),
                points(x, y, colour, tooltip),
                _names_above(y),
            ],
        ),
        reading=f"The {len(shown)} segments with the most steps of {len(known):,}."
        if len(known) > len(shown)
        else "",
    )


def _names_above(y: Spec) -> Spec:
    """Return the layer of names, each above its point, where a phone too has room for them."""
    mark = {
        "type": "text",
        "align": "left",
        "dy": -15,
        "color": "var(--text)",
        "limit": {"expr": "width"},
    }
    return {"mark": mark, "encoding": {"x": {"value": 0}, "y": y, "text": {"field": "segment"}}}


def bands_chart(shown: Sequence[Series]) -> Chart | None:
    """Show M early and late in the answers."""
    members = [series for series in shown if series.segment.figures.bands]
    data = [row for series in members for row in _band_rows(series)]
    if not data:
        return None
    x = axis_of("band", "ordinal", "output position, tokens", sort={"field": "start"})
    y = axis_of("value", "quantitative", "M", scale={"zero": False})
    colour = colours(members)
    tooltip = [
        tip("segment", "segment"),
        tip("band", "output position"),
        tip("text", "M"),
        tip("steps", "steps", ","),
    ]
    layers = [
        *intervals(data, bars(x, y, colour)),
        line(x, y, colour),
        points(x, y, colour, tooltip, shape=shapes(members)),
    ]
    return Chart(
        title="M by output position",
        gist=f"Mean acceptance length by output position. {' '.join(map(_band_gist, members))}",
        spec=chart_spec(data, height=230, layer=layers),
        series=names_of(members),
        reading="Upright lines: 95 % intervals." if any_interval(data) else "",
    )


def _band_rows(series: Series) -> Iterator[Datum]:
    for each in series.segment.figures.bands:
        if each.mean_acceptance_length.value is not None:
            yield {
                "segment": series.name,
                "band": band_name(each),
                "start": each.start,
                **ends_of(each.mean_acceptance_length),
                "text": interval_text(each.mean_acceptance_length, 2),
                "steps": each.steps,
            }


def _band_gist(series: Series) -> str:
    parts = ", ".join(f"{row['text']} at {row['band']}" for row in _band_rows(series))
    return f"{series.name}: {parts or 'unknown'}."


def draft_length_charts(shown: Sequence[Series]) -> Iterator[Chart]:
    """Show the speed of every K, the best one marked."""
    for series in shown:
        choice = series.segment.draft_length
        if choice is not None and any(each.speed.value is not None for each in choice.options):
            yield _draft_length_chart(series, choice)


def _draft_length_chart(series: Series, choice: DraftLengthChoice) -> Chart:
    unit = "tokens per plain step" if choice.relative else "tokens/s"
    data = [
        {
            "k": option.k,
            **ends_of(option.speed),
            "text": interval_text(option.speed, 2 if choice.relative else 1),
            "regret": option.regret,
            "label": f"best: K = {option.k}",
            "kind": "best" if option.k == choice.best_k else "other",
        }
        for option in choice.options
        if option.speed.value is not None
    ]
    x = whole_axis("k", "K", len(data), scale={"padding": 28, "nice": False, "zero": False})
    y = axis_of("value", "quantitative", unit, scale={"zero": False}, axis={"tickCount": 6})
    colour = fixed(series.style)
    tooltip = [tip("k", "K"), tip("text", unit), tip("regret", "regret", ".1%")]
    layers = [
        _plain_speed(y),
        *intervals(data, band(x, y, colour)),
        line(x, y, colour),
        points(x, y, colour, tooltip),
        *_best(x, y, tooltip),
    ]
    parts = ", ".join(f"K = {row['k']}: {row['text']}" for row in data)
    return Chart(
        title=series.name,
        gist=f"Speed in {unit} by K; best is K = {choice.best_k}. {parts}.",
        spec=chart_spec(data, height=220, layer=layers),
        reading="Ring: best K. "
        + ("Shaded: 95 % interval. " if any_interval(data) else "")
        + "Dashed: no speculation.",
    )


def _plain_speed(y: Spec) -> Spec:
    mark = {"type": "rule", "strokeDash": [5, 4], "color": "var(--quiet)"}
    return {"transform": [{"filter": "datum.k === 0"}], "mark": mark, "encoding": {"y": y}}


def _best(x: Spec, y: Spec, tooltip: Sequence[Spec]) -> tuple[Spec, Spec]:
    """Return a ring around the best K, and its label."""
    only = [{"filter": "datum.kind === 'best'"}]
    ring = {
        "type": "point",
        "size": 240,
        "strokeWidth": 2,
        "filled": False,
        "opacity": 1,
        "color": "var(--best)",
    }
    label = {"type": "text", "dy": -20, "fontWeight": 600, "color": "var(--best)"}
    return (
        {"transform": only, "mark": ring, "encoding": {"x": x, "y": y, "tooltip": tooltip}},
        {
            "transform": only,
            "mark": label,
            "encoding": {"x": x, "y": y, "text": {"field": "label"}},
        },
    )
