"""Where a replay is done: in this process, in several, or on a Ray cluster."""
