"""Tables that a statement names, without CTEs and other row sources."""

from collections.abc import Iterator, Sequence
from functools import lru_cache

from sqlglot import exp
from sqlglot.dialects.dialect import Dialect

DEFAULT_SCHEMAS = frozenset({"public", "main", "dbo"})
_FILE_FORMATS = frozenset(
    """
    text csv json parquet orc avro delta iceberg hudi binaryfile xml image libsvm jdbc kafka socket cloudfiles excel
    """.split()  # noqa: SIM905 - a table of words reads better than a list of literals
)
"""Names before a path in Spark, as in text.`/etc/passwd`."""
_PATH_DIALECTS = frozenset({"spark", "spark2", "databricks"})
_MARKS_OF_FILES = frozenset(".*?")
_FILE_SUFFIXES = frozenset(
    """
    csv tsv json jsonl ndjson parquet db duckdb sqlite sqlite3 txt xlsx xls gz zst bz2 zip arrow feather avro orc shp
    geojson gpkg ddb xml log fgb kml dxf arrows vortex lance br bgz lz4 ipc
    """.split()  # noqa: SIM905 - a table of words reads better than a list of literals
)
_PLAIN_FILE_SUFFIXES = frozenset({"csv", "tsv", "json", "jsonl", "ndjson", "parquet", "xlsx", "gz", "zst"})
_FILE_DIALECTS = frozenset({"", "duckdb"})
"""Dialects that read a file where a table has its name; no dialect counts, as it may be one of them."""
_CASE_SENSITIVE = frozenset({"clickhouse", "bigquery", "mysql", "doris", "starrocks"})
"""Dialects in which each spelling of a name may be another table."""
_CASE_INSENSITIVE = frozenset({"tsql", "fabric", "sqlite", "duckdb", "spark", "spark2", "databricks", "hive"})
_UPPER_CASE = frozenset({"oracle", "snowflake", "exasol"})
"""Dialects that fold plain names to upper case."""
_IMPLIED_RECURSION = frozenset({"tsql", "fabric", "oracle", "sqlite"})
QUERY_SCOPES = (exp.Select, exp.DML, exp.Pivot)
"""Nodes that have tables of their own; PIVOT of DuckDB stands in place of a SELECT."""
AMBIGUOUS = "?"
"""Table name for an alias that names several tables; no allowlist contains it."""


_OWN_SCHEMAS = {
    "main": frozenset({"", "sqlite", "duckdb"}),
    "dbo": frozenset({"", "tsql", "fabric"}),
    "public": frozenset(
        {"", "postgres", "redshift", "materialize", "risingwave", "snowflake", "duckdb", "exasol", "druid"}
    ),
}
"""Dialects in which a schema is where a plain name is looked up; no dialect counts, as it may be one of them."""


def schema_of(table: exp.Table, target: str) -> str:
    """Return the schema of a table if it has the name of a default schema, but is none in this dialect."""
    holder = table.db.lower()
    return holder if holder in _OWN_SCHEMAS and target not in _OWN_SCHEMAS[holder] else ""


def normal_name(name: str) -> str:
    """Return a table name in comparable form: lower case, without quotes and the default schema."""
    parts = [part.strip('"`[] ').lower() for part in name.split(".")]
    return ".".join(parts[1:] if len(parts) == 2 and parts[0] in DEFAULT_SCHEMAS else parts)


def table_name(table: exp.Table) -> str:
    """Return the comparable name of a table, or the empty string for a function in its place."""
    if isinstance(table.this, exp.Func) or _is_variable(table):
        return ""
    parts = [_part_name(part) for part in table.parts]
    if parts == ["dual"]:
        return ""
    return ".".join(parts[1:] if len(parts) == 2 and parts[0] in DEFAULT_SCHEMAS else parts)


def _part_name(part: exp.Expr) -> str:
    """Return the folded name; a temporary table of T-SQL keeps its `#`."""
    return ("#" if part.args.get("temporary") else "") + (part.name.lower() or part.sql().lower())


def _is_variable(table: exp.Table) -> bool:
    """Return True for `SELECT x INTO @v`, where a session variable takes the value."""
    return isinstance(table.parent, exp.Into) and isinstance(table.this, exp.Parameter)


def is_file(table: exp.Table, target: str) -> bool:
    """Return True if the database may open a file of this name."""
    if not isinstance(table.this, exp.Identifier):
        return False
    if target in _PATH_DIALECTS and table.db.lower() in _FILE_FORMATS and not table.catalog:
        return True
    name, quoted = table.name.lower(), bool(table.this.args.get("quoted"))
    if quoted and (any(mark in name for mark in "/\\:") or table.db.lower() in _FILE_FORMATS):
        return True
    if quoted and target == "duckdb" and _MARKS_OF_FILES & set(name):
        return True
    return quoted and "." in name and target in _FILE_DIALECTS and name.rpartition(".")[2] in _FILE_SUFFIXES


def may_be_file(table: exp.Table, target: str) -> bool:
    """Return True for `FROM data.csv`, which DuckDB reads from a file if there is no such table."""
    return bool(table.db) and target in _FILE_DIALECTS and table.name.lower() in _PLAIN_FILE_SUFFIXES


def is_other_spelling(table: exp.Table, target: str) -> bool:
    """Return True if a name may be that of another table than the plain name: by quotes, or by the case of letters."""
    if target in _CASE_SENSITIVE:
        return True
    if target in _CASE_INSENSITIVE:
        return False
    quoted = [part.name for part in table.parts if isinstance(part, exp.Identifier) and part.args.get("quoted")]
    if target in _UPPER_CASE:
        return any(name != name.upper() for name in quoted)
    return any(name != name.lower() for name in quoted)


def folds_to(name: str, target: str) -> bool:
    """Return True if a plain name means another spelling: `orders` is ORDERS in Oracle."""
    return target in _UPPER_CASE and name == name.lower()


def spelled_name(table: exp.Table) -> str:
    """Return the name of a table as it is written, without quotes."""
    return ".".join(part.name for part in table.parts)


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

    def __init__(self, statement: exp.Expr, target: str = "") -> None:
        self._kinds = frozenset(map(type, statement.walk()))
        self._by_query: dict[int, list[exp.Table]] | None = None
        self.columns_read: list[tuple[exp.Expr, str]] | None = None
        """Columns that the statement reads, once they have been looked for."""
        self._target = target
        self._fold = Dialect.get_or_raise(target) if target else None
        self._ctes = {self._folded(cte.args["alias"].this) for cte in statement.find_all(exp.CTE)}
        self.tables: list[exp.Table] = [
            table
            for table in statement.find_all(exp.Table, bfs=False)
            if table_name(table) and not self.is_cte(table) and not self._is_array(table)
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

    def _is_array(self, table: exp.Table) -> bool:
        """Return True for the column of an ARRAY JOIN in ClickHouse."""
        join = table.parent
        return self._target == "clickhouse" and isinstance(join, exp.Join) and join.kind.upper() == "ARRAY"

    def _bind(self, alias: str, name: str) -> None:
        self._aliases[alias] = name if self._aliases.get(alias, name) == name else AMBIGUOUS

    def name_of(self, table: exp.Table) -> str:
        """Return the table's name; for a target that is an alias (`UPDATE u ... FROM users u`), the table of that
        alias."""
        name = table_name(table)
        if table.alias or table.args.get("db") or not isinstance(table.parent, exp.Update | exp.Delete):
            return name
        return self._aliases.get(name, name)

    def scope_of(self, table: exp.Expr) -> exp.Expr | None:
        """Return the query whose table it is."""
        return table.find_ancestor(*QUERY_SCOPES)

    def tables_in(self, query: exp.Expr | None) -> Sequence[exp.Table]:
        """Return the tables that a SELECT or a DML statement names itself, without those of its subqueries."""
        if self._by_query is None:
            self._by_query = {}
            for table in self.tables:
                self._by_query.setdefault(id(self.scope_of(table)), []).append(table)
        return self._by_query.get(id(query), ())

    def has_cte(self, name: str) -> bool:
        """Return True if some WITH of the statement binds this name, spelled in the same way."""
        return name in self._ctes

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
        implied = self._target in _IMPLIED_RECURSION
        return name in self._ctes and any(name == self._folded(bound) for bound in _visible_ctes(table, implied))

    def _folded(self, identifier: exp.Identifier) -> str:
        """Return the name as the database compares it; without a known database only the same spelling is equal."""
        if self._fold is None:
            return identifier.name + ('"' if identifier.args.get("quoted") else "")
        return self._fold.normalize_identifier(identifier.copy()).name


def _is_target(table: exp.Table) -> bool:
    """Return True if a statement writes to the table, which is then not a CTE; where a database allows that, refusing
    is safe."""
    holder = table.parent.parent if isinstance(table.parent, exp.Schema) else table.parent
    written = isinstance(holder, exp.Insert | exp.Update | exp.Delete | exp.Merge | exp.Drop | exp.Create | exp.Into)
    return written and table.arg_key != "using" and table.arg_key != "expression"


def _visible_ctes(table: exp.Table, implied: bool) -> Iterator[exp.Identifier]:
    """Yield the names of the CTEs visible here: all of an outer WITH, or those before the enclosing one.

    A CTE is visible in itself only where it recurs. What some databases see in addition counts as a table.
    """
    child: exp.Expr = table
    node = table.parent
    own: exp.Expr | None = None
    inside: set[int] = set()
    while node is not None:
        inside.add(id(child))
        if isinstance(node, exp.With):
            own = child
        scope = node.args.get("with_")
        if isinstance(scope, exp.With):
            holder = own if own is not None and own.parent is scope else None
            recursive = bool(scope.args.get("recursive")) or implied
            yield from _visible_in(scope, holder, recursive and holder is not None and _recurs(holder, inside))
        child, node = node, node.parent


def _recurs(cte: exp.Expr, inside: set[int]) -> bool:
    """Return True if a node, of which the ancestors are given, is in the second part of the CTE's UNION."""
    body = cte.this.unnest()
    return isinstance(body, exp.SetOperation) and id(body.expression) in inside


def _visible_in(scope: exp.With, own: exp.Expr | None, recurs: bool) -> Iterator[exp.Identifier]:
    for cte in scope.expressions:
        if cte is not own or recurs:
            yield cte.args["alias"].this
        if cte is own:
            return
