"""The report on a probe for people."""

from textwrap import wrap

from rich import box
from rich.console import Console
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from outrider.records.probe.engines import engine_name
from outrider.records.probe.seen import Seen
from outrider.report.acceptance.literal import literal
from outrider.report.cells import counted
from outrider.report.probe.document import ProbeReport
from outrider.report.probe.wording import outcome_name, sentences

_INDENT = 2
_STYLES = {"tells": "green", "does not": "", "unknown": "yellow", "not tried": "dim"}


def write_text(report: ProbeReport, console: Console) -> None:
    """Write the rungs in their order, the best marked; then what to type next."""
    best = report.best
    _line(console, f"Probe: {literal(report.seen.root)}", style="bold", indent=0)
    _line(console, _server(report.seen))
    if best is None:
        _line(console, "Best: none; nothing here tells of speculation", style="bold yellow")
    else:
        _line(console, f"Best: {best.number}, {best.title}", style="bold")
    console.print()
    console.print(Padding(_table(report), (0, 0, 0, _INDENT), expand=False))
    _lines(console, "Next", [(line.command, line.gives) for line in report.next_lines])
    _lines(
        console,
        "For more (… is what the server has now)",
        [(one.change, one.gives) for one in report.more],
    )


def _table(report: ProbeReport) -> Table:
    table = Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False)
    table.add_column("  where, best first", no_wrap=True)
    table.add_column("outcome", no_wrap=True)
    table.add_column("what, or why not", overflow="fold")
    said: dict[str, int] = {}
    for rung in report.rungs:
        is_best = rung is report.best
        told = outcome_name(rung.outcome)
        what = literal(". ".join(sentences(rung.name, rung.outcome)), None)
        number = said.setdefault(what, rung.number)
        table.add_row(
            Text(f"{'→' if is_best else ' '} {rung.number} {rung.title}", "bold" * is_best),
            Text(told, style=_STYLES[told]),
            Text(what if number == rung.number else f"As {number}"),
        )
    return table


def _server(seen: Seen) -> str:
    engine = engine_name(seen.engine) if seen.engine else "engine unknown"
    version = f"version {seen.version}" if seen.version else "version unknown"
    if seen.engine and seen.version:
        engine, version = f"{engine} {seen.version}", ""
    model = f"model {seen.model}" if seen.model else "model unknown"
    sent = f"{counted(seen.requests_sent, 'request') if seen.requests_sent else 'no request'} sent"
    told = ", ".join(part for part in (engine, version, model) if part)
    return literal(f"{told}; {sent}", None)


def _lines(console: Console, title: str, entries: list[tuple[str, str]]) -> None:
    if not entries:
        return
    console.print()
    _line(console, title, style="bold", indent=0)
    for command, gives in entries:
        for line in wrap(literal(gives, None), console.width - _INDENT - len("# ")):
            _line(console, f"# {line}", style="dim")
        for line in command.split("\n"):
            # Never folded: what is pasted into a shell has to be whole.
            console.print(Text(f"{' ' * _INDENT}{literal(line, None)}"), soft_wrap=True)


def _line(console: Console, text: str, style: str = "", indent: int = _INDENT) -> None:
    console.print(
        Padding(Text(text, style=style, overflow="fold"), (0, 0, 0, indent), expand=False)
    )
