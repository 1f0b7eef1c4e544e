"""The embedded engine: models, drafters, verifiers and the step loop that joins them."""
