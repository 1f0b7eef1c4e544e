"""Attention over a paged cache of keys and values, and how these lie in memory."""
