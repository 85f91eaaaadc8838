"""Shared store: PostgreSQL, for several processes or machines (DESIGN 6)."""

try:
    import psycopg  # noqa: F401 - a missing driver is reported here, for the whole package
except ModuleNotFoundError as error:
    raise ImportError("PostgreSQL needs its driver: pip install 'qwed[postgres]'") from error
