"""Access checks: allowed tables, allowed columns and sensitive columns."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from sqlglot import exp

from qwed.engines._sql.columns import all_columns_read, columns_read, is_derived, is_proposed, written_columns
from qwed.engines._sql.parse import DOUBLE_QUOTED
from qwed.engines._sql.schema import Schema, schema_from
from qwed.engines._sql.secret_columns import is_sensitive
from qwed.engines._sql.table_names import (
    StatementNames,
    folds_to,
    is_other_spelling,
    normal_name,
    schema_of,
    spelled_name,
    table_name,
)
from qwed.engines.protocol import DEFAULT_SENSITIVE_COLUMNS, EngineRequest
from qwed.engines.sql_dialect import KNOWN_DIALECTS, dialect_named


@dataclass(frozen=True, kw_only=True, slots=True)
class AccessLimits:
    """Limits from policy and parameters; the parameters can only narrow the policy."""

    dialect: str
    """Dialect to parse in; the empty string if none is named."""
    target: str
    """Dialect of the database that executes the query; the empty string if it is not known."""
    functions: frozenset[str]
    tables: frozenset[str] | None
    spelled_tables: frozenset[str]
    """Allowed tables as the permissions write them."""
    stated_tables: frozenset[str]
    """Allowed tables with the schema that the permissions write."""
    columns: frozenset[str] | None
    sensitive: frozenset[str]
    schema: Schema | None
    max_rows: int | None
    explicit: bool
    """True if the permissions themselves say which columns are sensitive or allowed."""

    def column_allowed(self, table: str, column: str) -> bool:
        """Return True if a column may be read or written; for an unknown table the bare name must be allowed."""
        if self.columns is None:
            return True
        return column in self.columns or (bool(table) and f"{table}.{column}" in self.columns)

    def is_sensitive(self, table: str, column: str) -> bool:
        """Return True if the column is sensitive, by its own name or qualified by its table."""
        return is_sensitive(column, self.sensitive) or f"{table}.{column}" in self.sensitive


def limits_of(request: EngineRequest) -> AccessLimits | str:
    """Return the limits of a request, or the problem with its parameters."""
    parameters, policy = request.parameters, request.policy
    names = _dialects(policy.dialect, parameters.get("dialect"))
    if isinstance(names, str):
        return names
    dialect, target = names
    tables = _intersect_tables(policy.allowed_tables, parameters.get("allowed_tables"))
    if isinstance(tables, str):
        return tables
    schema = _schema(policy.schema_ddl, parameters, dialect)
    if isinstance(schema, str):
        return schema
    columns = policy.allowed_columns
    return AccessLimits(
        dialect=dialect,
        target=target,
        functions=frozenset(normal_name(name) for name in policy.allowed_functions),
        tables=tables,
        spelled_tables=frozenset(_spellings(policy.allowed_tables, parameters, target)),
        stated_tables=frozenset(name.replace('"', "").lower() for name in _granted(policy.allowed_tables, parameters)),
        columns=None if columns is None else frozenset(normal_name(column) for column in columns),
        sensitive=frozenset(normal_name(column) for column in policy.sensitive_columns),
        schema=schema,
        max_rows=policy.max_rows,
        explicit=columns is not None or set(policy.sensitive_columns) - set(DEFAULT_SENSITIVE_COLUMNS) != set(),
    )


def _dialects(granted: str | None, stated: object) -> tuple[str, str] | str:
    """Return the dialect to parse in and that of the database, or the problem with what the action states."""
    target = dialect_named(granted or "")
    dialect = dialect_named(stated or "")
    unknown = granted if target is None else stated
    if target is None or dialect is None:
        return f"unknown dialect `{str(unknown)[:40]}`: use one of {', '.join(KNOWN_DIALECTS)}"
    if target and dialect and target != dialect:
        return f"the action names the dialect `{dialect}`, but the database is `{target}`: leave `dialect` out"
    return target or dialect, target


def _intersect_tables(granted: tuple[str, ...] | None, requested: object) -> frozenset[str] | str | None:
    policy_tables = None if granted is None else frozenset(normal_name(name) for name in granted)
    if requested is None:
        return policy_tables
    if not isinstance(requested, list | tuple) or not all(isinstance(name, str) for name in requested):
        return "`allowed_tables` must be a list of table names"
    tables = frozenset(normal_name(name) for name in requested)
    return tables if policy_tables is None else policy_tables & tables


def _granted(granted: tuple[str, ...] | None, parameters: Mapping[str, Any]) -> Iterable[str]:
    return (parameters.get("allowed_tables") or ()) if granted is None else granted


def _spellings(granted: tuple[str, ...] | None, parameters: Mapping[str, Any], target: str) -> Iterable[str]:
    """Return allowed tables that are meant as they are written; the parameters count where there is no policy."""
    for name in _granted(granted, parameters):
        plain = name.replace('"', "")
        if plain != name or not folds_to(name, target):
            yield plain


def _schema(granted: str | None, parameters: Mapping[str, Any], dialect: str) -> Schema | str | None:
    ddl = granted if granted is not None else parameters.get("schema_ddl")
    if ddl is None:
        return None
    if not isinstance(ddl, str):
        return "`schema_ddl` must be the text of CREATE TABLE statements"
    schema = schema_from(ddl, dialect)
    return schema or "`schema_ddl` contains no CREATE TABLE statement that is valid in this dialect"


def table_problem(names: StatementNames, extra: tuple[str, ...], limits: AccessLimits) -> str:
    """Return a message on the first table that is not allowed, or the empty string."""
    if limits.tables is None:
        return ""
    for name in (*names.names, *extra):
        if name not in limits.tables:
            return f"table `{name}` is not allowed"
    for table in names.tables:
        schema = schema_of(table, limits.target)
        if schema and f"{schema}.{table_name(table)}" not in limits.stated_tables:
            return f"table `{schema}.{table_name(table)}` is not allowed"
    for table in names.tables:
        if is_other_spelling(table, limits.target) and spelled_name(table) not in limits.spelled_tables:
            return f"table `{spelled_name(table)}` is not allowed in this spelling"
    return ""


def sensitive_problem(statement: exp.Expr, names: StatementNames, limits: AccessLimits) -> str:
    """Return a message on the first sensitive column that is read, or the empty string."""
    for table, column in _reads(statement, names, limits):
        if limits.is_sensitive(table, column):
            return f"column `{column}` is sensitive: leave it out"
    # The agent states the dialect; in the actual database, such a text may be a column.
    for text in statement.root().meta.get(DOUBLE_QUOTED, ()):
        if any(limits.is_sensitive(table, text) for table in ("", *names.names)):
            return f"column `{text}` is sensitive: put a text in single quotes"
    return ""


def column_problem(statement: exp.Expr, names: StatementNames, limits: AccessLimits) -> str:
    """Return a message on the first column that is not allowed, or the empty string."""
    if any(isinstance(insert.this, exp.Table) for insert in statement.find_all(exp.Insert)):
        return "INSERT without a list of columns writes all of them: list the columns"
    mentioned = [
        (_owner(node, name, names, limits), name) for node, name in _own_columns(statement, names, limits.schema)
    ]
    starred = limits.schema.star_columns(statement, names) if limits.schema else ()
    for table, column in (*mentioned, *starred, *_inserted_columns(statement, names)):
        if not limits.column_allowed(table, column):
            return f"column `{column}` is not allowed"
    return ""


def _hides_column(column: exp.Column, names: StatementNames, schema: Schema | None) -> bool:
    """Return True if the alias of an output is also the name of a column, which most clauses prefer."""
    if schema is None or column.table or isinstance(column.parent, exp.Ordered):
        return False
    return any(column.name.lower() in schema.columns(table) for table in names.names)


def _own_columns(statement: exp.Expr, names: StatementNames, schema: Schema | None) -> Iterator[tuple[exp.Expr, str]]:
    for column in statement.find_all(exp.Column):
        if isinstance(column.this, exp.Star) or is_proposed(column):
            continue
        if not is_derived(column, names) or _hides_column(column, names, schema):
            yield column, column.name.lower()
    for node, name in columns_read(statement):
        if isinstance(node, exp.Dot | exp.Join | exp.Copy):
            yield node, name


def _inserted_columns(statement: exp.Expr, names: StatementNames) -> Iterator[tuple[str, str]]:
    return ((table, column.lower()) for table, column in written_columns(statement, names))


def _reads(statement: exp.Expr, names: StatementNames, limits: AccessLimits) -> Iterator[tuple[str, str]]:
    for node, name in all_columns_read(statement, names):
        yield _owner(node, name, names, limits), name
        yield from (("", part) for part in _fields_passed(node, names))
    if limits.schema:
        yield from limits.schema.star_columns(statement, names)


def _fields_passed(node: exp.Expr, names: StatementNames) -> list[str]:
    """Return the columns within a path such as `t.password.hash`: qualifiers that are not tables."""
    parts = [part.name.lower() for part in node.parts[:-1]] if isinstance(node, exp.Column) else []
    return [part for part in parts if not names.table_for(part) and not names.is_derived(part)]


def _owner(node: exp.Expr, column: str, names: StatementNames, limits: AccessLimits) -> str:
    """Return the table a column belongs to, or the empty string if that is not certain."""
    if isinstance(node, exp.Column) and node.table:
        return names.table_for(node.table)
    schema = limits.schema
    holders = [name for name in names.names if schema is None or column in schema.columns(name)]
    return holders[0] if len(holders) == 1 else ""
