"""Tables that a statement names, without CTEs and other row sources."""

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
"""Tables in which a database keeps the passwords and keys of its own users."""
AMBIGUOUS = "?"
"""Table name for an alias that names several tables; no allowlist contains it."""
_FILE_ENDINGS = (".csv", ".tsv", ".json", ".ndjson", ".parquet", ".db", ".sqlite", ".txt", ".xlsx", ".gz")


def normal_name(name: str) -> str:
    """Return a table name in comparable form: lower case, without quotes and the default schema."""
    parts = [part.strip('"`[] ').lower() for part in name.split(".")]
    return ".".join(parts[1:] if len(parts) == 2 and parts[0] in DEFAULT_SCHEMAS else parts)


def table_name(table: exp.Table) -> str:
    """Return the comparable name of a table, or the empty string for a function in its place."""
    if isinstance(table.this, exp.Func) or _is_variable(table):
        return ""
    parts = [part.name.lower() or part.sql().lower() for part in table.parts]
    if parts == ["dual"]:
        return ""
    return ".".join(parts[1:] if len(parts) == 2 and parts[0] in DEFAULT_SCHEMAS else parts)


def _is_variable(table: exp.Table) -> bool:
    """Return True for `SELECT x INTO @v`, where a session variable takes the value."""
    return isinstance(table.parent, exp.Into) and isinstance(table.this, exp.Parameter)


def is_catalog(name: str) -> bool:
    """Return True for a system catalog."""
    first, _, rest = name.partition(".")
    parts = name.split(".")
    system = name.startswith(("pg_", "v$", "gv$", "x$")) or any(part in CATALOG_TABLES for part in parts)
    return system or (bool(rest) and any(part in CATALOGS for part in parts[:-1])) or first == "information_schema"


def is_file(table: exp.Table) -> bool:
    """Return True if the database would open a file of this name."""
    if not isinstance(table.this, exp.Identifier):
        return False
    name = table.name.lower()
    quoted = bool(table.this.args.get("quoted"))
    return quoted and ("/" in name or "\\" in name or name.endswith(_FILE_ENDINGS))


def is_remote(table: exp.Table) -> bool:
    """Return True if the table is in another database: `users@link`, or a server name before the catalog."""
    alias = table.args.get("alias")
    linked = isinstance(alias, exp.TableAlias) and isinstance(alias.this, exp.Parameter)
    return linked or "@" in table.name or len(table.parts) > 3


@lru_cache(maxsize=4096)
def _has_subclass(kinds: frozenset[type[exp.Expr]], types: tuple[type[exp.Expr], ...]) -> bool:
    return any(issubclass(kind, types) for kind in kinds)


class StatementNames:
    """Tables of one statement, and the types of its nodes."""

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
        """Return the table's name; for a target that is an alias (`UPDATE u ... FROM users u`), the table of that
        alias."""
        name = table_name(table)
        if table.alias or table.args.get("db") or not isinstance(table.parent, exp.Update | exp.Delete):
            return name
        return self._aliases.get(name, name)

    def has_node(self, *types: type[exp.Expr]) -> bool:
        """Return True if the statement has a node of one of these types; cheaper than a traversal."""
        return _has_subclass(self._kinds, types)

    def is_derived(self, qualifier: str) -> bool:
        """Return True if the qualifier names a subquery, a CTE or a list of rows, and not a table."""
        return qualifier.lower() in self._derived and not self.table_for(qualifier)

    def table_for(self, qualifier: str) -> str:
        """Return the table that an alias or a table name refers to, or the empty string."""
        word = qualifier.lower()
        return self._aliases.get(word) or self._by_last.get(word, "")

    def is_cte(self, table: exp.Table) -> bool:
        """Return True if the name is bound by a WITH whose scope includes this table."""
        if not self._ctes or table.args.get("db") or not isinstance(table.this, exp.Identifier) or _is_target(table):
            return False
        name = self._folded(table.this)
        return name in self._ctes and any(name == self._folded(bound) for bound in _visible_ctes(table))

    def _folded(self, identifier: exp.Identifier) -> str:
        return self._fold.normalize_identifier(identifier.copy()).name


def _is_target(table: exp.Table) -> bool:
    """Return True if a statement writes to the table, which is then not a CTE; where a database allows that, refusing
    is safe."""
    holder = table.parent.parent if isinstance(table.parent, exp.Schema) else table.parent
    written = isinstance(holder, exp.Insert | exp.Update | exp.Delete | exp.Merge | exp.Drop | exp.Create | exp.Into)
    return written and table.arg_key != "using" and table.arg_key != "expression"


def _visible_ctes(table: exp.Table) -> Iterator[exp.Identifier]:
    """Yield the names of the CTEs visible here: all of an outer WITH, or those before the enclosing one."""
    child: exp.Expr = table
    node = table.parent
    own: exp.Expr | None = None
    while node is not None:
        if isinstance(node, exp.With):
            own = child
        scope = node.args.get("with_")
        if isinstance(scope, exp.With):
            yield from _visible_in(scope, own if own is not None and own.parent is scope else None)
        child, node = node, node.parent


def _visible_in(scope: exp.With, own: exp.Expr | None) -> Iterator[exp.Identifier]:
    for cte in scope.expressions:
        if cte is own and not scope.args.get("recursive"):
            return
        yield cte.args["alias"].this
