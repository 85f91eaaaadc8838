"""Internals of the Python guard; import `qwed.guards.python_code` instead."""
