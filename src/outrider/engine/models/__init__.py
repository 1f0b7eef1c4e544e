"""Model code, weights and where they come from."""
