"""Internals of the math engine: parsing, exact arithmetic and proofs. The entry point is `engines/math.py`."""
