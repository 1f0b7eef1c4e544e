"""The `outrider` script, for tests that run it in another process and signal it."""

import sys

SCRIPT = (sys.executable, "-c", "from outrider.cli.entry import run; run()")
"""Not -m: Python then ends by SIGINT itself, and not with the exit code, where the interrupt met it
in an exec, such as one of those that make a dataclass during an import."""
