"""The schema a query is held against: read from DDL, asked for tables, columns and what `*` means."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import sqlglot
from sqlglot import MappingSchema, exp
from sqlglot.errors import SqlglotError
from sqlglot.optimizer.qualify import qualify

from qwed.engines._sql_columns import is_written, star_sources
from qwed.engines._sql_names import Names, table_name
from qwed.engines._sql_parse import MAX_CHARACTERS

Columns = dict[str, str]


@dataclass(frozen=True, slots=True)
class Schema:
    """Tables by comparable name; a view, whose columns DDL does not list, has None."""

    tables: Mapping[str, Columns | None]

    def columns(self, table: str) -> tuple[str, ...]:
        """The columns of a table, in the order of the DDL."""
        return tuple(self.tables.get(table) or ())

    def is_open(self, names: Names) -> bool:
        """Whether some table's columns are not known."""
        return any(self.tables.get(name) is None for name in names.names)

    def starred(self, statement: exp.Expr, names: Names) -> Iterator[tuple[str, str]]:
        """Each (table, column) that a `*` or a whole-row reference stands for."""
        for table, left_out in star_sources(statement, names, self.columns):
            for column in self.columns(table):
                if column not in left_out:
                    yield table, column


def schema_from(ddl: str, dialect: str) -> Schema | None:
    """The schema the DDL describes, or None where it describes none."""
    if len(ddl) > MAX_CHARACTERS:
        return None
    try:
        statements = sqlglot.parse(ddl, read=dialect)
    except (SqlglotError, RecursionError):
        return None
    if any(isinstance(statement, exp.Command) for statement in statements):
        return None
    tables = dict(_described(statements, dialect))
    return Schema(tables) if tables else None


def _described(statements: list[exp.Expr | None], dialect: str) -> Iterator[tuple[str, Columns | None]]:
    for statement in statements:
        if not isinstance(statement, exp.Create) or statement.kind not in {"TABLE", "VIEW"}:
            continue
        table = statement.find(exp.Table)
        if table is None or not table_name(table):
            continue
        columns = {
            column.name.lower(): _type_of(column, dialect)
            for column in (statement.this.expressions if isinstance(statement.this, exp.Schema) else ())
            if isinstance(column, exp.ColumnDef)
        }
        yield table_name(table), columns or None


def _type_of(column: exp.ColumnDef, dialect: str) -> str:
    kind = column.args.get("kind")
    return kind.sql(dialect=dialect) if isinstance(kind, exp.Expr) else "TEXT"


def schema_problem(statement: exp.Expr, names: Names, schema: Schema, dialect: str) -> str:
    """What the statement names that the schema does not have, or nothing."""
    created = statement.find(exp.Table) if isinstance(statement, exp.Create) else None
    for table in names.tables:
        if names.name_of(table) not in schema.tables and table is not created:
            return f"table `{names.name_of(table)}` is not in the schema"
    if schema.is_open(names):
        return ""
    if isinstance(statement, exp.Query):
        return _query_problem(statement, names, schema, dialect)
    return _column_problem(statement, names, schema)


def _query_problem(statement: exp.Expr, names: Names, schema: Schema, dialect: str) -> str:
    flat: dict[str, object] = {_flat(name): dict(columns or {}) for name, columns in schema.tables.items()}
    try:
        tree = _flattened(statement, names)
        qualify(tree, schema=MappingSchema(flat, dialect=dialect), dialect=dialect, quote_identifiers=False)
    except SqlglotError as error:
        sentence = str(error).partition(". Line")[0].partition("\n")[0]
        return sentence[:1].lower() + sentence[1:].replace("'", "`")
    return ""


def _flat(name: str) -> str:
    return name.replace(".", "__")


def _flattened(statement: exp.Expr, names: Names) -> exp.Expr:
    """A copy in which every name is plain and folded, so dialects and quoting make no difference."""
    marked = [id(table) for table in statement.find_all(exp.Table) if table in names.tables]
    keys = {
        index: names.name_of(table) for index, table in enumerate(statement.find_all(exp.Table)) if id(table) in marked
    }
    copy = statement.copy()
    for index, table in enumerate(list(copy.find_all(exp.Table))):
        if index in keys:
            alias = table.alias or table.name
            table.set("this", exp.to_identifier(_flat(keys[index])))
            table.set("db", None)
            table.set("catalog", None)
            if not isinstance(table.args.get("alias"), exp.TableAlias):
                table.set("alias", exp.TableAlias(this=exp.to_identifier(alias)))
    for column in copy.find_all(exp.Column):
        column.set("catalog", None)
        column.set("db", None)
    for identifier in copy.find_all(exp.Identifier):
        identifier.set("this", identifier.name.lower())
        identifier.set("quoted", False)
    return copy


def _column_problem(statement: exp.Expr, names: Names, schema: Schema) -> str:
    """For statements that write: each column exists in the table it names, or in some table of the statement."""
    anywhere = {column for name in names.names for column in schema.columns(name)}
    anywhere |= {alias.alias.lower() for alias in statement.find_all(exp.Alias)}
    for column in statement.find_all(exp.Column):
        table = names.behind(column.table) if column.table else ""
        known = set(schema.columns(table)) if table else anywhere
        if column.table.lower() == "excluded" or isinstance(column.this, exp.Star):
            continue
        if column.name.lower() not in known and (table or not column.table):
            return f"column `{column.name}` is not in the schema"
    for name, listed in is_written(statement, names):
        if listed.lower() not in schema.columns(name):
            return f"column `{listed}` is not in table `{name}`"
    return ""
