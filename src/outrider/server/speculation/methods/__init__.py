"""The methods that this engine runs: one file each, and a registry."""
