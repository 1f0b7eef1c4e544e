"""What the numbers mean: counts, survival, intervals and speed, without I/O or other packages."""
