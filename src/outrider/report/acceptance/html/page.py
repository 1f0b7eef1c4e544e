"""The acceptance report as one HTML file that opens offline."""

import re
from base64 import b64encode
from collections.abc import Callable, Sequence
from functools import cache
from hashlib import sha256
from importlib.metadata import version
from pathlib import Path
from typing import Any

import vl_convert
from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup, escape
from rich.console import Console

from outrider.report.acceptance.document import AcceptanceReport, SegmentReport
from outrider.report.acceptance.html.chart_parts import MOST_CHARTED, Chart, largest
from outrider.report.acceptance.html.charts import (
    bands_chart,
    comparison_chart,
    draft_length_charts,
    histogram_charts,
)
from outrider.report.acceptance.html.expected import expected_section
from outrider.report.acceptance.html.findings import find_findings
from outrider.report.acceptance.html.identities import identity_groups
from outrider.report.acceptance.html.overview import choices, tiles, without_choice
from outrider.report.acceptance.html.replay import replay_section
from outrider.report.acceptance.html.survival_chart import survival_charts
from outrider.report.acceptance.html.tables import (
    bands_table,
    cadence_table,
    key_text,
    positions_table,
    segments_table,
    shared_values,
    split_table,
)
from outrider.report.acceptance.literal import literal
from outrider.report.acceptance.short_names import with_short_names
from outrider.report.cells import counted, number
from outrider.report.definitions import Definition

FEW = 3
"""How many segments are spread out where the others are folded up or only counted."""

_LONGEST = 600
"""Longer words from a source are cut."""
_FOLDER = Path(__file__).parent
_GLYPHS = ("●", "■", "▲", "◆", "▼", "✚")
_SUBSCRIPT = re.compile(r"\b([A-Za-z])_([0-9A-Za-z])\b")


def write_html(report: AcceptanceReport, console: Console) -> None:
    """Write the report as one page that needs no other file and no network.

    What a browser may run is bound to the page's own two scripts by their hashes, so that no text
    of a source can become code.
    """
    console.file.write(report_to_html(report))


def report_to_html(report: AcceptanceReport) -> str:
    """Return the page; every number is in its tables, and charts are drawn where it is opened."""
    environment = Environment(
        loader=FileSystemLoader(_FOLDER),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=_shown,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.policies["json.dumps_kwargs"] = {"allow_nan": False}
    environment.filters.update(sub=_subscripts, sentence=_sentence)
    environment.globals.update(counted=counted, number=number, glyphs=_GLYPHS, few=FEW)
    renamed, _ = with_short_names(report)
    return environment.get_template("page.html.jinja").render(_contents(renamed))


def _contents(report: AcceptanceReport) -> dict[str, Any]:
    segments = report.segments
    charts = _charts(segments)
    scripts = [_asset("page.js")]
    if any(charts.values()):
        scripts.insert(0, _bundle())
    return {
        "report": report,
        "several": len(segments) > 1,
        "definition": _glossary(report.definitions),
        "tiles": list(tiles(segments)),
        "replay": replay_section(report),
        "expected": expected_section(report),
        "findings": find_findings(report),
        "charts": charts,
        "shared": ", ".join(key_text(*each) for each in shared_values(segments)),
        "left_out": _left_out(segments),
        "tables": _tables(report),
        "choices": list(choices((*segments, *report.whole))),
        "without_choice": without_choice(segments, FEW),
        "identities": list(identity_groups(report.whole or segments)),
        "scripts": [Markup(script) for script in scripts],  # noqa: S704
        "script_sources": " ".join(_hash_source(script) for script in scripts),
        "style": Markup(_asset("page.css")),  # noqa: S704
        "version": version("outrider"),
    }


def _charts(segments: Sequence[SegmentReport]) -> dict[str, list[Chart]]:
    shown = largest(segments)
    comparison, bands = comparison_chart(segments), bands_chart(shown)
    return {
        "comparison": [comparison] if comparison else [],
        "survival": list(survival_charts(shown)),
        "histograms": list(histogram_charts(shown)),
        "bands": [bands] if bands else [],
        "draft_lengths": list(draft_length_charts(shown)),
    }


def _tables(report: AcceptanceReport) -> dict[str, Any]:
    pooled = report.pooled
    shown = pooled is None or pooled in report.segments or pooled in report.whole
    return {
        "segments": segments_table("segments", "Segments", report.segments),
        "whole": segments_table("whole", "Without the split", report.whole)
        if report.whole
        else None,
        "pooled": None
        if shown or pooled is None
        else segments_table("pooled", "All records as one segment", (pooled,)),
        "split": split_table(report.split) if report.split else None,
        "positions": [
            table
            for place, segment in enumerate(report.segments)
            if (table := positions_table(f"positions-{place}", segment)) is not None
        ],
        "bands": bands_table(report.segments),
        "cadence": cadence_table(report.segments),
    }


def _left_out(segments: Sequence[SegmentReport]) -> str:
    if len(segments) <= MOST_CHARTED:
        return ""
    return (
        f"Charts show the {MOST_CHARTED} segments with the most steps of {len(segments):,};"
        " the tables have them all."
    )


def _glossary(definitions: Sequence[Definition]) -> Callable[..., str | None]:
    """Return what finds the page's anchor of a symbol's definition."""
    anchors: dict[str, str] = {}
    for place, entry in enumerate(definitions, start=1):
        for symbol in (entry.symbol, *entry.symbol.split(", ")):
            anchors.setdefault(symbol, f"d-{place}")
    return anchors.get


def _shown(value: object) -> object:
    # Bytes of a file name that are no text would keep the page from being written, and marks of
    # direction would turn around what stands beside them.
    return literal(value, _LONGEST) if type(value) is str else value


def _subscripts(text: str) -> Markup:
    """Set H_0 with its index below; the text is escaped."""
    return Markup(_SUBSCRIPT.sub(r"\1<sub>\2</sub>", str(escape(text))))  # noqa: S704


def _sentence(text: str) -> str:
    """Begin with a capital, unless that would change a symbol, and end with a full stop."""
    if text[1:2].isalpha() and text[:1].islower():
        text = text[:1].upper() + text[1:]
    return text if text.endswith((".", "!", "?", "…")) or not text else f"{text}."


@cache
def _bundle() -> str:
    """Return the charts' library, Vega-Embed with what it needs, as a module."""
    return str(vl_convert.javascript_bundle("window.vegaEmbed = vegaEmbed;"))


@cache
def _asset(name: str) -> str:
    return (_FOLDER / name).read_text(encoding="utf-8")


def _hash_source(script: str) -> str:
    return f"'sha256-{b64encode(sha256(script.encode()).digest()).decode()}'"
