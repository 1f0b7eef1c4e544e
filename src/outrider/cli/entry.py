"""What the `outrider` script runs: Ctrl-C is quiet from the first moment on."""

import os
import signal

INTERRUPTED = 130


def run() -> None:
    """Load the command line, which takes a second, and run it."""
    signal.signal(signal.SIGINT, lambda *_: os._exit(INTERRUPTED))
    from outrider.cli.main import main  # noqa: PLC0415  the very point

    signal.signal(signal.SIGINT, signal.default_int_handler)
    main()


if __name__ == "__main__":
    run()
