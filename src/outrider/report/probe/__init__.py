"""The report on what a server can tell."""
