"""Drafting from what was already said: token arrays in, drafts out, without torch."""
