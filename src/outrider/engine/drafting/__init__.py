"""Drafters: one file each, and a registry that builds them from an arm."""
