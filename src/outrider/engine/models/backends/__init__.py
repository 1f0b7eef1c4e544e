"""The ways to compute a target, one file each."""
