"""`outrider watch`: acceptance of a live server, with an alarm on either side."""

import io
import os
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from math import inf, isfinite
from pathlib import Path
from typing import Annotated, BinaryIO

import httpx2
import typer

from outrider.acceptance.alarm_band import FEWEST_WINDOWS, LEAST_M, FixedBand, Limits
from outrider.cli.durations import parse_duration_s
from outrider.cli.entry import INTERRUPTED
from outrider.cli.gathering import TIMEOUT_S, check_keys
from outrider.cli.options import Debug
from outrider.cli.output import Output
from outrider.errors import InvalidSetting, NothingUsable
from outrider.records.adapters.registry import ADAPTERS
from outrider.records.appending import AppendedFile
from outrider.records.scrape import scrape_url
from outrider.records.segment_keys import BASE_KEYS
from outrider.records.sources.addresses import is_url, without_password
from outrider.records.sources.framing import numbered_lines
from outrider.records.sources.live import Arrivals, live_readings
from outrider.records.windows import Window, scraped_windows, streamed_windows
from outrider.report.watch.baseline import Baseline
from outrider.report.watch.document import WatchSummary
from outrider.report.watch.running import JsonLines, KeptLines, Listener, run_watch
from outrider.report.watch.segment import band_text
from outrider.report.watch.text import WatchText
from outrider.report.watch.watcher import BandOf, Watcher

ALARMED = 1
FORMS = ("text", "json")

Text = str | None


def watch(
    source: Annotated[str, typer.Argument(help="URL of a server's /metrics, or - for a stream.")],
    every: Annotated[str, typer.Option(help="How long a window is.")] = "10s",
    for_text: Annotated[
        Text, typer.Option("--for", help="How long to watch, e.g. 10m.  [default: until Ctrl-C]")
    ] = None,
    by: Annotated[
        list[str] | None,
        typer.Option("--by", help="Make segments of this key; repeatable. A URL tells rank."),
    ] = None,
    band: Annotated[
        Text, typer.Option(help="LOW,HIGH: what M is to be; either may be left empty.")
    ] = None,
    baseline: Annotated[Text, typer.Option(help="Take the band from this JSON report.")] = None,
    learn: Annotated[int, typer.Option(help="Else learn it from so many windows.")] = 20,
    min_steps: Annotated[int, typer.Option(help="Judge no window of fewer steps.")] = 50,
    confirm: Annotated[
        int, typer.Option(help="Windows in a row that raise an alarm, or clear it.")
    ] = 2,
    fail_fast: Annotated[bool, typer.Option("--fail-fast", help="End at the first alarm.")] = False,
    format_name: Annotated[str, typer.Option("--format", help="text or json (lines).")] = "text",
    output: Annotated[
        Path | None, typer.Option(help="Append the JSON lines to this file as well.")
    ] = None,
    debug: Debug = False,  # noqa: ARG001  read by main()
) -> None:
    """Watch the acceptance of a live server, and raise an alarm if it leaves its band.

    Too low may be garbled text or a drafter that no longer fits, too high answers that loop. Exit
    code: 1 if an alarm was raised, 130 after Ctrl-C, else 0.
    """
    _at_least("--min-steps", min_steps, 1)
    _at_least("--confirm", confirm, 1)
    _at_least("--learn", learn, FEWEST_WINDOWS)
    if format_name not in FORMS:
        raise InvalidSetting(f"--format {format_name}", "text or json", "choose one of them")
    keys = tuple(dict.fromkeys(name for names in by or () for name in names.split(",")))
    watcher = Watcher(
        _bands(band, baseline), by=keys, learn=learn, min_steps=min_steps, confirm=confirm
    )
    every_s = parse_duration_s("--every", every)
    for_s = None if for_text is None else parse_duration_s("--for", for_text)
    console = _LiveOutput()
    kept = [] if output is None else [KeptLines(AppendedFile(output), _say)]
    with httpx2.Client(timeout=TIMEOUT_S, follow_redirects=True) as http:
        try:
            windows = _windows(source, keys, http, every_s=every_s, for_s=for_s)
            shown: Listener = JsonLines(console.write_lines)
            if format_name == "text":
                shown = WatchText(console, learn=learn, min_steps=min_steps, confirm=confirm)
                shown.begin(without_password(source), every_s, _told_band(band, baseline, learn))
            # The file first, so that it lacks nothing that was seen.
            summary = run_watch(windows, watcher, [*kept, shown], fail_fast=fail_fast)
        except KeyboardInterrupt:
            raise typer.Exit(INTERRUPTED) from None
        except _ReaderGone:
            summary = watcher.summary()
    _end(summary, source)


def _end(summary: WatchSummary, source: str) -> None:
    if summary.alarmed:
        raise typer.Exit(ALARMED)
    if source == "-" and not summary.segments:
        raise NothingUsable(
            "nothing usable on standard input",
            "JSON lines or a log that tell of speculation",
            "see docs/watch.md",
        )


class _ReaderGone(Exception):
    """Nobody reads the output any more, as after `head`."""


class _LiveOutput(Output):
    """Standard output of a watch, which ends with its reader."""

    def on_broken_pipe(self) -> None:
        super().on_broken_pipe()
        raise _ReaderGone

    def write_lines(self, lines: Sequence[str]) -> None:
        """Write lines as they are, at once."""
        try:
            self.file.write("".join(f"{line}\n" for line in lines))
            self.file.flush()
        except BrokenPipeError:
            self.on_broken_pipe()


def _windows(
    source: str,
    keys: Sequence[str],
    http: httpx2.Client,
    *,
    every_s: float,
    for_s: float | None,
) -> Iterator[Window]:
    clock = _steady_clock()
    if source == "-":
        arrivals = Arrivals(live_readings(source, numbered_lines(_stdin()), ADAPTERS))
        windows = streamed_windows(
            arrivals.take, by=_asked(keys), every_s=every_s, for_s=for_s, clock=clock
        )
    elif is_url(source):
        windows = scraped_windows(
            without_password(source),
            partial(scrape_url, source, http),
            every_s=every_s,
            for_s=for_s,
            by_rank="rank" in keys,
            clock=clock,
            sleep=time.sleep,
        )
    else:
        remedy = "write for instance http://localhost:8000"
        if Path(source).is_file():
            remedy = f"pipe it: tail -n +1 -F {source} | outrider watch -"
        elif source and "//" not in source:
            remedy = f"write http://{source}"
        raise InvalidSetting(source or "''", "the URL of a server, or - for standard input", remedy)
    return _with_known_keys(windows, keys)


def _with_known_keys(windows: Iterator[Window], keys: Sequence[str]) -> Iterator[Window]:
    """Check the keys once something has come that may have them."""
    unchecked = _asked(keys)
    for window in windows:
        if unchecked and window.collection.used:
            check_keys(unchecked, window.collection)
            unchecked = []
        yield window


def _asked(keys: Sequence[str]) -> list[str]:
    return [name for name in keys if name not in BASE_KEYS]


def _bands(band: str | None, baseline: str | None) -> BandOf:
    if band is not None and baseline is not None:
        raise InvalidSetting("--band with --baseline", "one of them", "leave one out")
    if baseline is not None:
        return Baseline(baseline).band
    if band is None:
        return lambda _: None
    fixed = FixedBand(_limits(band))
    return lambda _: fixed


def _told_band(band: str | None, baseline: str | None, learn: int) -> str:
    if baseline is not None:
        return f"M is held against {baseline}"
    if band is not None:
        return f"M is held against {band_text(_limits(band))}"
    return f"the band is learned from the first {learn} windows"


def _limits(text: str) -> Limits:
    wrong = InvalidSetting(
        f"--band {text}",
        f"LOW,HIGH with {LEAST_M:g} ≤ LOW < HIGH, such as 1.3,2.5 or 1.3, or ,2.5",
        "M is the number of tokens per step",
    )
    parts = [part.strip() for part in text.split(",")]
    if len(parts) != 2 or not any(parts):  # noqa: PLR2004
        raise wrong
    try:
        low, high = (float(part) if part else None for part in parts)
    except ValueError:
        raise wrong from None
    ends = LEAST_M if low is None else low, inf if high is None else high
    if not (isfinite(ends[0]) and LEAST_M <= ends[0] < ends[1]) or high == inf:
        raise wrong
    return Limits(low, high)


def _at_least(option: str, value: int, least: int) -> None:
    if value < least:
        raise InvalidSetting(f"{option} {value}", f"at least {least}", "leave it out")


def _steady_clock() -> Callable[[], float]:
    """Return Unix time that does not jump when somebody sets the clock."""
    offset = time.time() - time.monotonic()
    return lambda: offset + time.monotonic()


def _stdin() -> BinaryIO:
    """Return standard input by a file of its own, which the end of Python does not wait for."""
    if sys.stdin is None:
        return io.BytesIO()
    try:
        return os.fdopen(os.dup(sys.stdin.fileno()), "rb")
    except (OSError, io.UnsupportedOperation):
        return sys.stdin.buffer


def _say(text: str) -> None:
    print(f"outrider: {text}", file=sys.stderr)  # noqa: T201
