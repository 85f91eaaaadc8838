"""SQLGuard under its published name."""

from qwed.engines.sql_guard import SQLGuard, SQLSafety

__all__ = ["SQLGuard", "SQLSafety"]
