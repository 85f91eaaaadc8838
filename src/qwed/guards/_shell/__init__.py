"""Parts of the shell guard: the tree, its words and variables, and what each program does. `shell.py` is the door."""
