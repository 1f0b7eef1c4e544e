"""Verifiers: one file per way to judge a draft, and a registry that builds them by name."""
