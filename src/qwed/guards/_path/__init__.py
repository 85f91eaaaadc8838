"""Parts of the path guard: the forms of a path, and the sensitive places. `path.py` is the door."""
