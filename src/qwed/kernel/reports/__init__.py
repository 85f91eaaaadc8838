"""Compliance report; `builder.py` is the entry point (spec 7.3)."""
