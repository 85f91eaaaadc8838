"""Parts of the guard for personal data. `pii.py` is the door."""
