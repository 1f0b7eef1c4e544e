"""`python -m outrider` is `outrider`."""

from outrider.cli.entry import run

run()
