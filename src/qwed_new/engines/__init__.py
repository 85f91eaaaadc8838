"""Engines under their published import names."""
