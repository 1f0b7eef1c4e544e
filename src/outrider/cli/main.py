"""Entry point: subcommands, and one line for whatever a user can cause."""

import signal
import sys
from importlib import metadata
from typing import Annotated

import typer

from outrider.cli.report import report
from outrider.cli.tune import tune
from outrider.errors import OutriderError

INTERRUPTED = 130

app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    help="Tells whether speculative decoding pays on your prompts, hardware and load.",
)
app.command()(tune)
app.command()(report)


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


def main() -> None:
    """Runs the command line; exits with 2 for bad input and 1 for output that is not lossless."""
    signal.signal(signal.SIGTERM, lambda *_: signal.raise_signal(signal.SIGINT))
    try:
        app()
    except OutriderError as error:
        if "--debug" in sys.argv:
            raise
        print(f"outrider: {error}", file=sys.stderr)  # noqa: T201
        sys.exit(error.exit_code)
    except KeyboardInterrupt:
        print("outrider: interrupted", file=sys.stderr)  # noqa: T201
        sys.exit(INTERRUPTED)
    except BrokenPipeError:
        # The reader has what it wanted; a second failure at exit would only add noise.
        sys.stderr.close()
        sys.exit(0)


if __name__ == "__main__":
    main()
