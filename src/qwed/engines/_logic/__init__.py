"""Internals of the logic engine: notations, English and the solver. The entry point is `engines/logic.py`."""
