"""The shared store: PostgreSQL, for more than one process or machine. DESIGN 6."""

try:
    import psycopg  # noqa: F401 - whoever wants this room is told here what it needs
except ModuleNotFoundError as error:
    raise ImportError("PostgreSQL needs its driver: pip install 'qwed[postgres]'") from error
