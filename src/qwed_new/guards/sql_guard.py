"""SQL guard under its published import name."""

from qwed.engines.sql_guard import SQLGuard, SQLSafety

__all__ = ["SQLGuard", "SQLSafety"]
