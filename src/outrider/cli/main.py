"""Entry point: subcommands, and one line for whatever a user can cause."""

import io
import signal
import sys
import traceback
from collections.abc import Sequence
from importlib import metadata
from typing import Annotated

import typer
from typer.exceptions import TyperException

from outrider.cli.probe import probe
from outrider.cli.replay import replay
from outrider.cli.report import report
from outrider.cli.serve import serve
from outrider.cli.train import train
from outrider.cli.tune import tune
from outrider.cli.watch import watch
from outrider.errors import OutriderError

app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    help="Tells whether speculative decoding pays on your prompts, hardware and load.",
)
app.command()(tune)
app.command()(report)
app.command()(replay)
app.command()(watch)
app.command()(probe)
app.command()(serve)
app.command()(train)


def _version(wanted: bool) -> None:  # noqa: FBT001  typer's way to call back
    if wanted:
        typer.echo(metadata.version("outrider"))
        raise typer.Exit


@app.callback()
def options(
    version: Annotated[
        bool,
        typer.Option("--version", callback=_version, is_eager=True, help="Print the version."),
    ] = False,
) -> None:
    """Tells whether speculative decoding pays on your prompts, hardware and load."""


def main(arguments: Sequence[str] | None = None) -> None:
    """Runs the command line, `sys.argv` unless `arguments` are given, and exits.

    The exit code is 2 after bad input, 1 after output that is not lossless, 130 after Ctrl-C.
    """
    given = sys.argv[1:] if arguments is None else list(arguments)
    signal.signal(signal.SIGTERM, _terminate)
    # A terminal that closes; nohup has it ignored, and Windows knows none.
    hangup = getattr(signal, "SIGHUP", None)
    if hangup is not None and signal.getsignal(hangup) is signal.SIG_DFL:
        signal.signal(hangup, _terminate)
    if isinstance(sys.stdout, io.TextIOWrapper):
        # A terminal or file that has no ρ gets a question mark instead of a failure.
        sys.stdout.reconfigure(errors="replace")
    try:
        code = app(given, standalone_mode=False)
    except TyperException as error:
        if not given:
            app(["--help"], standalone_mode=False)
        else:
            print("outrider:", _misused(error), file=sys.stderr)  # noqa: T201
        sys.exit(error.exit_code)
    except (OutriderError, OSError) as error:
        if "--debug" in given:
            traceback.print_exc()
        told = error if isinstance(error, OutriderError) else _refused(error)
        print("outrider:", " ".join(str(told).split()), file=sys.stderr)  # noqa: T201
        sys.exit(told.exit_code)
    sys.exit(code or 0)


def _misused(error: TyperException) -> str:
    """What was typed wrong, in one line and with where the right ways are told."""
    context = getattr(error, "ctx", None)
    command = "outrider" if context is None or context.parent is None else context.info_name
    help_of = command if command == "outrider" else f"outrider {command}"
    seen = " ".join(error.format_message().rstrip(".").split())
    return f"{seen}; expected what {help_of} --help lists; correct it"


def _terminate(*_: object) -> None:
    """Ends like Ctrl-C, also where that is ignored, as for what a script runs in the background."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        raise KeyboardInterrupt
    signal.raise_signal(signal.SIGINT)


def _refused(error: OSError) -> OutriderError:
    """What no part foresaw, such as a name too long or a disk that fails."""
    return OutriderError(
        f"the operating system refused ({error})", "files to read and write", "choose other paths"
    )


if __name__ == "__main__":
    main()
