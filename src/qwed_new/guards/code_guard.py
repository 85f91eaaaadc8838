"""The code guard under its published name."""

from qwed.guards.code_guard import CodeGuard, CodeSafety

__all__ = ["CodeGuard", "CodeSafety"]
