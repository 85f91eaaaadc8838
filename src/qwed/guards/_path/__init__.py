"""Internals of the path guard; import `qwed.guards.path` instead."""
