"""Internals of the JavaScript guard; import `qwed.guards.javascript_code` instead."""
