"""Internals of the personal data guard; import `qwed.guards.pii` instead."""
