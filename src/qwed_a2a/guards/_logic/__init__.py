"""Parts of the logic guard: assertions, what they say and deny, comparisons with numbers. `logic.py` is the door."""
