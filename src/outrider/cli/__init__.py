"""The `outrider` command: one thin module for each subcommand."""
