"""Spec 7.3: the compliance report. `gathering.py` is the door."""
