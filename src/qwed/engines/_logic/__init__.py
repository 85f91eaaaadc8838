"""Parts of the logic engine: the language, English, and the solver. `logic.py` is the door."""
