"""What the agent may touch: tables, columns, and columns nobody reads."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from sqlglot import exp

from qwed.engines._sql.columns import columns_read, derived, is_sensitive, is_written, stars
from qwed.engines._sql.names import Names, normal_name
from qwed.engines._sql.parse import DOUBLE_QUOTED, KNOWN_DIALECTS, dialect_named
from qwed.engines._sql.schema import Schema, schema_from
from qwed.engines.protocol import EngineRequest


@dataclass(frozen=True, kw_only=True, slots=True)
class Limits:
    """Policy and parameters as one: the parameters only narrow."""

    dialect: str
    tables: frozenset[str] | None
    columns: frozenset[str] | None
    sensitive: frozenset[str]
    schema: Schema | None
    max_rows: int | None

    def column_allowed(self, table: str, column: str) -> bool:
        """Whether a column may be read or written; an unknown table needs the bare name."""
        if self.columns is None:
            return True
        return column in self.columns or (bool(table) and f"{table}.{column}" in self.columns)

    def is_sensitive(self, table: str, column: str) -> bool:
        """Whether nobody reads this column, under its own name or its table's."""
        return is_sensitive(column, self.sensitive) or f"{table}.{column}" in self.sensitive


def limits_of(request: EngineRequest) -> Limits | str:
    """The limits of a request, or what is wrong with its parameters."""
    parameters, policy = request.parameters, request.policy
    dialect = dialect_named(parameters.get("dialect") or "")
    if dialect is None:
        named = str(parameters.get("dialect"))[:40]
        return f"unknown dialect `{named}`: use one of {', '.join(KNOWN_DIALECTS)}"
    tables = _narrowed(policy.allowed_tables, parameters.get("allowed_tables"))
    if isinstance(tables, str):
        return tables
    schema = _schema(policy.schema_ddl, parameters, dialect)
    if isinstance(schema, str):
        return schema
    columns = policy.allowed_columns
    return Limits(
        dialect=dialect,
        tables=tables,
        columns=None if columns is None else frozenset(normal_name(column) for column in columns),
        sensitive=frozenset(normal_name(column) for column in policy.sensitive_columns),
        schema=schema,
        max_rows=policy.max_rows,
    )


def _narrowed(granted: tuple[str, ...] | None, asked: object) -> frozenset[str] | str | None:
    mine = None if granted is None else frozenset(normal_name(name) for name in granted)
    if asked is None:
        return mine
    if not isinstance(asked, list | tuple) or not all(isinstance(name, str) for name in asked):
        return "`allowed_tables` must be a list of table names"
    wanted = frozenset(normal_name(name) for name in asked)
    return wanted if mine is None else mine & wanted


def _schema(granted: str | None, parameters: Mapping[str, Any], dialect: str) -> Schema | str | None:
    ddl = granted if granted is not None else parameters.get("schema_ddl")
    if ddl is None:
        return None
    if not isinstance(ddl, str):
        return "`schema_ddl` must be the text of CREATE TABLE statements"
    schema = schema_from(ddl, dialect)
    return schema or "`schema_ddl` holds no CREATE TABLE statement that this dialect can read"


def table_problem(names: Names, extra: tuple[str, ...], limits: Limits) -> str:
    """The first table outside the allowed ones, in words."""
    for name in (*names.names, *extra):
        if limits.tables is not None and name not in limits.tables:
            return f"table `{name}` is not allowed"
    return ""


def sensitive_problem(statement: exp.Expr, names: Names, limits: Limits) -> str:
    """The first sensitive column that is read, in words."""
    for table, column in _reads(statement, names, limits):
        if limits.is_sensitive(table, column):
            return f"column `{column}` is sensitive: leave it out"
    # The agent names the dialect, and the database it asks may be another, where such a text is a column.
    for text in statement.root().meta.get(DOUBLE_QUOTED, ()):
        if any(limits.is_sensitive(table, text) for table in ("", *names.names)):
            return f"column `{text}` is sensitive: put a text in single quotes"
    return ""


def column_problem(statement: exp.Expr, names: Names, limits: Limits) -> str:
    """The first column outside the allowed ones, in words."""
    if limits.schema is None and any(True for _ in stars(statement)):
        return "`*` may hold columns that are not allowed: list the columns"
    if any(isinstance(insert.this, exp.Table) for insert in statement.find_all(exp.Insert)):
        return "INSERT without a list of columns writes all of them: list the columns"
    mentioned = [(_owner(node, name, names, limits), name) for node, name in _own_columns(statement, names)]
    starred = limits.schema.starred(statement, names) if limits.schema else ()
    for table, column in (*mentioned, *starred, *_written(statement, names)):
        if not limits.column_allowed(table, column):
            return f"column `{column}` is not allowed"
    return ""


def _own_columns(statement: exp.Expr, names: Names) -> Iterator[tuple[exp.Expr, str]]:
    for column in statement.find_all(exp.Column):
        if isinstance(column.this, exp.Star) or column.table.lower() == "excluded":
            continue
        if not derived(column, names):
            yield column, column.name.lower()
    for node, name in columns_read(statement):
        if isinstance(node, exp.Dot | exp.Join):
            yield node, name


def _written(statement: exp.Expr, names: Names) -> Iterator[tuple[str, str]]:
    return ((table, column.lower()) for table, column in is_written(statement, names))


def _reads(statement: exp.Expr, names: Names, limits: Limits) -> Iterator[tuple[str, str]]:
    for node, name in columns_read(statement):
        yield _owner(node, name, names, limits), name
        yield from (("", part) for part in _fields_passed(node, names))
    if limits.schema:
        yield from limits.schema.starred(statement, names)


def _fields_passed(node: exp.Expr, names: Names) -> list[str]:
    """The columns on the way of a path such as `t.password.hash`: what qualifies a name and is no table."""
    parts = [part.name.lower() for part in node.parts[:-1]] if isinstance(node, exp.Column) else []
    return [part for part in parts if not names.behind(part) and not names.is_derived(part)]


def _owner(node: exp.Expr, column: str, names: Names, limits: Limits) -> str:
    """The table a column belongs to, or nothing where that is not certain."""
    if isinstance(node, exp.Column) and node.table:
        return names.behind(node.table)
    schema = limits.schema
    holders = [name for name in names.names if schema is None or column in schema.columns(name)]
    return holders[0] if len(holders) == 1 else ""
