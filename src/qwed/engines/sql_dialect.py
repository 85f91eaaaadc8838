"""Names of SQL dialects."""

from qwed.engines._sql.lexer import rules_by_dialect

KNOWN_DIALECTS = tuple(sorted(rules_by_dialect().keys() - {""}))
ALIASES = {
    "": "",
    "generic": "",
    "ansi": "",
    "sql": "",
    "standard": "",
    "postgresql": "postgres",
    "pg": "postgres",
    "psql": "postgres",
    "cockroachdb": "postgres",
    "timescaledb": "postgres",
    "greenplum": "postgres",
    "mssql": "tsql",
    "sqlserver": "tsql",
    "sql server": "tsql",
    "t-sql": "tsql",
    "transact-sql": "tsql",
    "azuresql": "tsql",
    "synapse": "tsql",
    "mariadb": "mysql",
    "sqlite3": "sqlite",
    "plsql": "oracle",
    "pl/sql": "oracle",
    "sparksql": "spark",
    "pyspark": "spark",
    "delta": "databricks",
    "amazonathena": "athena",
    "google": "bigquery",
    "googlesql": "bigquery",
}


def dialect_named(name: object) -> str | None:
    """Return the plain name of a dialect, the empty string for generic SQL, or None for an unknown name."""
    if not isinstance(name, str):
        return None
    word = name.strip().lower()
    word = ALIASES.get(word, word)
    return word if word == "" or word in KNOWN_DIALECTS else None
