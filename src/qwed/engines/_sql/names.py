"""Which tables a statement really names: CTE names and row sources that are no tables left out."""

from collections.abc import Iterator
from functools import lru_cache

from sqlglot import exp
from sqlglot.dialects.dialect import Dialect

DEFAULT_SCHEMAS = frozenset({"public", "main", "dbo"})
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
    """.split()  # noqa: SIM905 - a table of words reads better than a list of literals
)
CREDENTIAL_TABLES = frozenset(
    """
    pg_shadow pg_authid pg_user_mapping pg_user_mappings mysql.user mysql.global_priv mysql.db sys.sql_logins
    master.sys.sql_logins sql_logins sys.syslogins syslogins master.syslogins master..syslogins master.dbo.syslogins
    sysxlogins master..sysxlogins sys.user$ user$ sys.link$ link$ sys.credentials duckdb_secrets user_history$
    sys.user_history$ dba_db_links master.dbo.sysxlogins sys.linked_logins
    """.split()  # noqa: SIM905 - a table of words reads better than a list of literals
)
"""Where a database keeps the passwords and keys of its own users."""
AMBIGUOUS = "?"
"""Stands for the table behind an alias that names several; no list holds it."""
_FILE_ENDINGS = (".csv", ".tsv", ".json", ".ndjson", ".parquet", ".db", ".sqlite", ".txt", ".xlsx", ".gz")


def normal_name(name: str) -> str:
    """A table name as it is compared: lower case, quotes and the default schema dropped."""
    parts = [part.strip('"`[] ').lower() for part in name.split(".")]
    return ".".join(parts[1:] if len(parts) == 2 and parts[0] in DEFAULT_SCHEMAS else parts)


def table_name(table: exp.Table) -> str:
    """The comparable name of a table, or nothing for a function in its place."""
    if isinstance(table.this, exp.Func) or _is_variable(table):
        return ""
    parts = [part.name.lower() or part.sql().lower() for part in table.parts]
    if parts == ["dual"]:
        return ""
    return ".".join(parts[1:] if len(parts) == 2 and parts[0] in DEFAULT_SCHEMAS else parts)


def _is_variable(table: exp.Table) -> bool:
    """`SELECT x INTO @v`: a variable of the session takes the value."""
    return isinstance(table.parent, exp.Into) and isinstance(table.this, exp.Parameter)


def is_catalog(name: str) -> bool:
    """Whether this is where a database describes itself."""
    first, _, rest = name.partition(".")
    parts = name.split(".")
    system = name.startswith(("pg_", "v$", "gv$", "x$")) or any(part in CATALOG_TABLES for part in parts)
    return system or (bool(rest) and any(part in CATALOGS for part in parts[:-1])) or first == "information_schema"


def is_file(table: exp.Table) -> bool:
    """Whether the database would open a file under this name."""
    if not isinstance(table.this, exp.Identifier):
        return False
    name = table.name.lower()
    quoted = bool(table.this.args.get("quoted"))
    return quoted and ("/" in name or "\\" in name or name.endswith(_FILE_ENDINGS))


def is_remote(table: exp.Table) -> bool:
    """Whether another database is asked: `users@link`, a server's name before the catalog."""
    alias = table.args.get("alias")
    linked = isinstance(alias, exp.TableAlias) and isinstance(alias.this, exp.Parameter)
    return linked or "@" in table.name or len(table.parts) > 3


@lru_cache(maxsize=4096)
def _any_of(kinds: frozenset[type[exp.Expr]], wanted: tuple[type[exp.Expr], ...]) -> bool:
    return any(issubclass(kind, wanted) for kind in kinds)


class Names:
    """The tables of one statement, and what kinds of node it has."""

    def __init__(self, statement: exp.Expr, dialect: str) -> None:
        self._kinds = frozenset(map(type, statement.walk()))
        self._fold = Dialect.get_or_raise(dialect)
        self._ctes = {self._folded(cte.args["alias"].this) for cte in statement.find_all(exp.CTE)}
        self.tables: list[exp.Table] = [
            table for table in statement.find_all(exp.Table, bfs=False) if table_name(table) and not self.is_cte(table)
        ]
        real = {id(table) for table in self.tables}
        self._aliases: dict[str, str] = {}
        for table in self.tables:
            if table.alias:
                self._bind(table.alias.lower(), table_name(table))
        self.names: tuple[str, ...] = tuple(dict.fromkeys(self.name_of(table) for table in self.tables))
        """Every table once, in the order of the text."""
        self._by_last: dict[str, str] = {}
        for name in self.names:
            self._by_last.setdefault(name.rpartition(".")[2], name)
        self._derived = {
            table.alias_or_name.lower() for table in statement.find_all(exp.Table) if id(table) not in real
        }
        self._derived |= {
            alias.name.lower() for alias in statement.find_all(exp.TableAlias) if id(alias.parent) not in real
        }

    def _bind(self, alias: str, name: str) -> None:
        self._aliases[alias] = name if self._aliases.get(alias, name) == name else AMBIGUOUS

    def name_of(self, table: exp.Table) -> str:
        """The table's name; where a target names an alias (`UPDATE u ... FROM users u`), the table behind it."""
        name = table_name(table)
        if table.alias or table.args.get("db") or not isinstance(table.parent, exp.Update | exp.Delete):
            return name
        return self._aliases.get(name, name)

    def holds(self, *wanted: type[exp.Expr]) -> bool:
        """Whether the statement has a node of one of these kinds: told at once, where a look for one walks the tree."""
        return _any_of(self._kinds, wanted)

    def is_derived(self, qualifier: str) -> bool:
        """Whether the qualifier names a subquery, a CTE or a list of rows, and no table."""
        return qualifier.lower() in self._derived and not self.behind(qualifier)

    def behind(self, qualifier: str) -> str:
        """The table an alias or a table name stands for, or nothing."""
        word = qualifier.lower()
        return self._aliases.get(word) or self._by_last.get(word, "")

    def is_cte(self, table: exp.Table) -> bool:
        """Whether the name is bound by a WITH that reaches this place."""
        if not self._ctes or table.args.get("db") or not isinstance(table.this, exp.Identifier) or _is_target(table):
            return False
        name = self._folded(table.this)
        return name in self._ctes and any(name == self._folded(bound) for bound in _bound_above(table))

    def _folded(self, identifier: exp.Identifier) -> str:
        return self._fold.normalize_identifier(identifier.copy()).name


def _is_target(table: exp.Table) -> bool:
    """A statement writes to tables, never to a CTE; where a database allows it, the refusal is the safe side."""
    holder = table.parent.parent if isinstance(table.parent, exp.Schema) else table.parent
    written = isinstance(holder, exp.Insert | exp.Update | exp.Delete | exp.Merge | exp.Drop | exp.Create | exp.Into)
    return written and table.arg_key != "using" and table.arg_key != "expression"


def _bound_above(table: exp.Table) -> Iterator[exp.Identifier]:
    """Names of the CTEs visible from here: all of an outer WITH, or those before the one we stand in."""
    child: exp.Expr = table
    node = table.parent
    own: exp.Expr | None = None
    while node is not None:
        if isinstance(node, exp.With):
            own = child
        scope = node.args.get("with_")
        if isinstance(scope, exp.With):
            yield from _visible(scope, own if own is not None and own.parent is scope else None)
        child, node = node, node.parent


def _visible(scope: exp.With, own: exp.Expr | None) -> Iterator[exp.Identifier]:
    for cte in scope.expressions:
        if cte is own and not scope.args.get("recursive"):
            return
        yield cte.args["alias"].this
