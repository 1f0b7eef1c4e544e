"""Lookup drafters, one pass over the log each, and a registry that builds them."""
