"""Internals of the shell guard; import `qwed.guards.shell` instead."""
