"""Internals of the SQL engine. The entry point is `engines/sql.py`."""
