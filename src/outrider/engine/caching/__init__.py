"""The cache of keys and values: its blocks, who holds them, and what can be shared."""
