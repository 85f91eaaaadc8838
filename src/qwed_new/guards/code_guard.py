"""Code guard under its published import name."""

from qwed.guards.code_guard import CodeGuard, CodeSafety

__all__ = ["CodeGuard", "CodeSafety"]
