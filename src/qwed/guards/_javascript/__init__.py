"""Parts of the JavaScript guard: the tree, its names and values, and the rules. `javascript_code.py` is the door."""
