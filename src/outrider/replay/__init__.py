"""Lookup drafters over logged traffic: what they would have accepted, without a model."""
