"""The hook of a coding agent: one tool call in, a yes or a no out. `qwed hook` is the command around it."""
