"""Logs of answers: one file per format, and a registry."""
