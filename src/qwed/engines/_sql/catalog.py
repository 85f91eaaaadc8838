"""Tables that a database has about itself, and those of them that hold secrets."""

import re
import tomllib
from functools import cache, lru_cache
from importlib.resources import files

from sqlglot import exp

_DESCRIBING_CALL = re.compile(
    r"(?i)(?:pg_(?:get|relation|total_relation|table|indexes|stat_get|partition|column|describe|identify|sequence)_"
    r"|to_reg|has_\w+_privilege$|(?:col|obj|shobj)_description$|currval$)"
)
"""Functions that say something about the table that an argument names."""
_NAME = re.compile(r"[a-z_][\w$]*\*?", re.ASCII)
CATALOGS = frozenset(
    {"information_schema", "pg_catalog", "mysql", "performance_schema", "sys", "master", "msdb", "pg_toast"}
)
CATALOG_TABLES = frozenset(
    """
    sqlite_master sqlite_schema sqlite_temp_master sqlite_temp_schema sqlite_sequence sysobjects syscolumns sysusers
    sysdatabases sysindexes systypes syscomments sysprocesses syslogins sysxlogins sysservers msysobjects
    all_tables all_tab_columns all_tab_cols all_users all_objects all_views all_source all_constraints all_synonyms
    user_tables user_tab_columns user_objects user_views user_users user_role_privs user_tab_privs session_privs
    dba_tables dba_tab_columns dba_users dba_objects dba_role_privs dba_sys_privs duckdb_tables duckdb_columns
    duckdb_settings duckdb_secrets innodb_table_stats innodb_index_stats svv_tables svv_columns stl_query
    sqlite_stat1 sqlite_stat3 sqlite_stat4 sqlite_stmt duckdb_logs user_tab_histograms all_tab_histograms
    dba_tab_histograms user_tab_col_statistics all_tab_col_statistics dba_tab_col_statistics user_tab_statistics
    dba_hist_sqlbind dba_hist_sqltext user_mapping_options column_statistics
    """.split()  # noqa: SIM905 - a table of words reads better than a list of literals
)
CREDENTIAL_TABLES = frozenset(
    """
    pg_shadow pg_authid pg_user_mapping pg_user_mappings mysql.user mysql.global_priv mysql.db sys.sql_logins
    master.sys.sql_logins sql_logins sys.syslogins syslogins master.syslogins master..syslogins master.dbo.syslogins
    sysxlogins master..sysxlogins sys.user$ user$ sys.link$ link$ sys.credentials duckdb_secrets user_history$
    sys.user_history$ dba_db_links master.dbo.sysxlogins sys.linked_logins sqlite_dbpage sqlite_dbdata sqlite_dbptr
    pg_subscription pg_largeobject
    pg_statistic pg_statistic_ext_data pg_stats pg_stats_ext pg_stats_ext_exprs pg_hba_file_rules
    pg_ident_file_mappings pg_foreign_server pg_foreign_data_wrapper sys.symmetric_keys sys.asymmetric_keys
    """.split()  # noqa: SIM905 - a table of words reads better than a list of literals
)
"""Tables in which a database keeps the passwords and keys of its own users, or copies of other tables' values."""
_PLAIN_SYSTEM_TABLES = ("mysql.time_zone", "mysql.help_", "mysql.innodb_", "mysql.func", "mysql.plugin")


def is_catalog(name: str) -> bool:
    """Return True for a system catalog."""
    first, _, rest = name.partition(".")
    parts = name.split(".")
    system = name.startswith(("pg_", "v$", "gv$", "x$")) or any(part in CATALOG_TABLES for part in parts)
    return system or (bool(rest) and any(part in CATALOGS for part in parts[:-1])) or first == "information_schema"


@lru_cache(maxsize=4096)
def is_opaque_catalog(name: str) -> bool:
    """Return True for a table of a catalogue that is not known to hold only structure, settings and measurements."""
    if not is_catalog(name) or is_credential_table(name):
        return False
    holder, _, last = name.rpartition(".")
    rows = _readable().get(holder.rpartition(".")[2], _readable()["plain"])
    return rows.fullmatch(last.removeprefix("g") if last.startswith("gv$") else last) is None


@cache
def _readable() -> dict[str, re.Pattern[str]]:
    """Return a pattern of the names of each schema of the data file."""
    data = tomllib.loads(files(__package__).joinpath("data", "catalog.toml").read_text(encoding="utf-8"))
    return {schema: _pattern(names.split()) for schema, names in data["readable"].items()}


def _pattern(names: list[str]) -> re.Pattern[str]:
    wrong = [name for name in names if not _NAME.fullmatch(name)]
    if wrong:
        raise ValueError(f"catalog.toml: `{wrong[0]}` is not the name of a table")
    return re.compile("|".join(re.escape(name).replace(r"\*", ".*") for name in names))


def reads_catalog(statement: exp.Expr) -> bool:
    """Return True if a function in place of a table describes the tables: `pragma_table_info`, `duckdb_tables`."""
    if any(_DESCRIBING_CALL.match(call.name) for call in statement.find_all(exp.Anonymous)):
        return True
    calls = (table.this for table in statement.find_all(exp.Table) if isinstance(table.this, exp.Anonymous))
    return any(call.name.lower().startswith(("pragma_", "duckdb_")) for call in calls)


def is_credential_table(name: str) -> bool:
    """Return True for a table that holds secrets of the database itself; of schema `mysql`, most tables do."""
    return name in CREDENTIAL_TABLES or (name.startswith("mysql.") and not name.startswith(_PLAIN_SYSTEM_TABLES))
