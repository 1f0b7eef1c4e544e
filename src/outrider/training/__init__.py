"""Training a draft model for a target, on the target's own answers."""
