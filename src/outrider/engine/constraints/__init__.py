"""Structured outputs: what a request's output must look like, held token by token."""
