"""Internals of the secrets guard; import `qwed.guards.secrets` instead."""
