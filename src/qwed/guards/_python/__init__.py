"""Parts of the Python guard: names, values, calls, and the tables of what they do. `python_code.py` is the door."""
