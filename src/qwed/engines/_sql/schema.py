"""Schema of a database, parsed from DDL, and checks of a statement against it."""

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import sqlglot
from sqlglot import MappingSchema, exp
from sqlglot.errors import SqlglotError
from sqlglot.optimizer.annotate_types import annotate_types
from sqlglot.optimizer.qualify import qualify

from qwed.engines._sql.columns import is_natural, is_proposed, star_sources, written_columns
from qwed.engines._sql.parse import MAX_CHARACTERS, PARSER_ERRORS
from qwed.engines._sql.table_names import QUERY_SCOPES, StatementNames, table_name
from qwed.engines._sql.types import SqlKind, fits, kind_of_node, kind_of_type, type_problem

Columns = dict[str, str]
_SCHEMA_DIALECTS = ("", "postgres", "mysql", "tsql", "oracle")
_SERIAL_TYPES = {"SERIAL": "INT", "BIGSERIAL": "BIGINT", "SMALLSERIAL": "SMALLINT"}
_NUMBERED = re.compile(r"\$\d+")


@dataclass(frozen=True, slots=True)
class Schema:
    """Tables by comparable name; a view, whose columns DDL does not list, has None."""

    tables: Mapping[str, Columns | None]

    def columns(self, table: str) -> tuple[str, ...]:
        """Return the columns of a table, in the order of the DDL."""
        return tuple(self.tables.get(table) or ())

    def is_open(self, names: StatementNames) -> bool:
        """Return True if the columns of some table are unknown."""
        return any(self.tables.get(name) is None for name in names.names)

    def star_columns(self, statement: exp.Expr, names: StatementNames) -> Iterator[tuple[str, str]]:
        """Yield each (table, column) that a `*` or a whole-row reference stands for."""
        for table, left_out in star_sources(statement, names, self.columns):
            for column in self.columns(table):
                if column not in left_out:
                    yield table, column
        yield from self._joined_by_name(statement, names)

    def _joined_by_name(self, statement: exp.Expr, names: StatementNames) -> Iterator[tuple[str, str]]:
        """Yield each (table, column) that a natural join compares."""
        for join in filter(is_natural, statement.find_all(exp.Join)):
            tables = [names.name_of(table) for table in names.tables_in(join.find_ancestor(*QUERY_SCOPES))]
            known = Counter(column for table in tables for column in self.columns(table))
            yield from ((table, name) for table in tables for name in self.columns(table) if known[name] > 1)


def schema_from(ddl: str, dialect: str) -> Schema | None:
    """Return the schema that the DDL describes, or None if it describes none."""
    if len(ddl) > MAX_CHARACTERS:
        return None
    # A schema is often written for a different database than the stated one.
    for candidate in dict.fromkeys((dialect, *_SCHEMA_DIALECTS)):
        tables = _tables_of(ddl, candidate)
        if tables:
            return Schema(tables)
    return None


def _tables_of(ddl: str, dialect: str) -> dict[str, Columns | None]:
    try:
        statements = sqlglot.parse(ddl, read=dialect)
    except (*PARSER_ERRORS, SqlglotError, RecursionError):
        return {}
    if any(isinstance(statement, exp.Command) for statement in statements):
        return {}
    return dict(_described_tables(statements))


def _described_tables(statements: list[exp.Expr | None]) -> Iterator[tuple[str, Columns | None]]:
    for statement in statements:
        if not isinstance(statement, exp.Create) or statement.kind not in {"TABLE", "VIEW"}:
            continue
        table = statement.find(exp.Table)
        if table is None or not table_name(table):
            continue
        columns = {
            column.name.lower(): _type_of(column)
            for column in (statement.this.expressions if isinstance(statement.this, exp.Schema) else ())
            if isinstance(column, exp.ColumnDef)
        }
        yield table_name(table), columns or None


def _type_of(column: exp.ColumnDef) -> str:
    kind = column.args.get("kind")
    text = kind.sql() if isinstance(kind, exp.Expr) else "UNKNOWN"
    return _SERIAL_TYPES.get(text.upper(), text)


def schema_problem(statement: exp.Expr, names: StatementNames, schema: Schema, dialect: str) -> str:
    """Return a message on a name that is not in the schema, or the empty string."""
    created = statement.find(exp.Table) if isinstance(statement, exp.Create) else None
    for table in names.tables:
        if names.name_of(table) not in schema.tables and table is not created:
            return f"table `{names.name_of(table)}` is not in the schema"
    if schema.is_open(names):
        return ""
    if isinstance(statement, exp.Query):
        return _query_problem(statement, names, schema, dialect)
    return _column_problem(statement, names, schema) or _written_problem(statement, names, schema, dialect)


def _query_problem(statement: exp.Expr, names: StatementNames, schema: Schema, dialect: str) -> str:
    flat: dict[str, object] = {_flat_name(name): dict(columns or {}) for name, columns in schema.tables.items()}
    try:
        mapping = MappingSchema(flat, dialect=dialect)
        tree = qualify(_flatten(statement, names), schema=mapping, dialect=dialect, quote_identifiers=False)
        annotated = annotate_types(tree, schema=mapping, dialect=dialect)
    except SqlglotError as error:
        sentence = str(error).partition(". Line")[0].partition("\n")[0]
        return sentence[:1].lower() + sentence[1:].replace("'", "`")
    return type_problem(annotated, kind_of_node, dialect)


def width_problem(statement: exp.Expr) -> str:
    """Return a message if the branches of a UNION differ in their number of columns, or the empty string."""
    for union in statement.find_all(exp.SetOperation):
        widths = {_width(branch) for branch in (union.this.unnest(), union.expression.unnest())} - {0}
        if len(widths) > 1:
            return "the branches of a UNION have different numbers of columns"
    return ""


def _width(branch: exp.Expr) -> int:
    """Return the number of columns of a SELECT, 0 if that is not certain."""
    cells = branch.expressions if isinstance(branch, exp.Select) else []
    opened = any(cell.is_star or isinstance(cell.unalias(), exp.Columns | exp.UDTF | exp.Explode) for cell in cells)
    by_name = isinstance(branch.parent, exp.SetOperation) and branch.parent.args.get("by_name")
    return 0 if opened or by_name else len(cells)


def _written_problem(statement: exp.Expr, names: StatementNames, schema: Schema, dialect: str) -> str:
    """Check a statement that writes: values must fit their columns, in type and number."""

    def kind_of(node: exp.Expr) -> SqlKind:
        if not isinstance(node, exp.Column):
            return kind_of_type(node.args["to"]) if isinstance(node, exp.Cast) else SqlKind.OTHER
        behind = names.table_for(node.table) if node.table else ""
        holders = [behind] if behind else [name for name in names.names if node.name.lower() in schema.columns(name)]
        columns = schema.tables.get(holders[0]) if len(holders) == 1 else None
        return kind_of_type((columns or {}).get(node.name.lower(), ""))

    if not statement.find(exp.Query):
        problem = type_problem(statement, kind_of, dialect)
        if problem:
            return problem
    inserts = (insert for insert in statement.find_all(exp.Insert) if insert.expression is not None)
    return next((message for insert in inserts if (message := _insert_problem(insert, names, schema))), "")


def _insert_problem(insert: exp.Expr, names: StatementNames, schema: Schema) -> str:
    target = insert.this.this if isinstance(insert.this, exp.Schema) else insert.this
    if not isinstance(target, exp.Table) or insert.args.get("by_name"):
        return ""
    columns = schema.tables.get(names.name_of(target)) or {}
    listed = [column.name.lower() for column in insert.this.expressions] if isinstance(insert.this, exp.Schema) else []
    targets = listed or list(columns)
    source = insert.expression
    for row in source.expressions if isinstance(source, exp.Values) else [source]:
        cells = row.expressions if isinstance(row, exp.Tuple) else []
        width = len(cells) if isinstance(row, exp.Tuple) else _width(row)
        if width > len(targets) or (listed and 0 < width < len(listed)):
            return f"{width} values for {len(targets)} columns of table `{names.name_of(target)}`"
        for name, cell in zip(targets, cells, strict=False):
            kind = kind_of_type(columns.get(name, ""))
            if isinstance(cell, exp.Literal) and cell.is_string and not fits(cell.name, kind):
                return f"column `{name}` is {kind.value} and cannot hold this text"
    return ""


def _flat_name(name: str) -> str:
    return name.replace(".", "__")


def _flatten(statement: exp.Expr, names: StatementNames) -> exp.Expr:
    """Return a copy with plain, folded names, so that dialects and quoting make no difference."""
    table_ids = [id(table) for table in statement.find_all(exp.Table) if table in names.tables]
    keys = {
        index: names.name_of(table)
        for index, table in enumerate(statement.find_all(exp.Table))
        if id(table) in table_ids
    }
    copy = statement.copy()
    for index, table in enumerate(list(copy.find_all(exp.Table))):
        if index in keys:
            alias = table.alias or table.name
            table.set("this", exp.to_identifier(_flat_name(keys[index])))
            table.set("db", None)
            table.set("catalog", None)
            if not isinstance(table.args.get("alias"), exp.TableAlias):
                table.set("alias", exp.TableAlias(this=exp.to_identifier(alias)))
    for column in list(copy.find_all(exp.Column)):
        if _NUMBERED.fullmatch(column.name):
            column.replace(exp.Placeholder())
        column.set("catalog", None)
        column.set("db", None)
    for identifier in copy.find_all(exp.Identifier):
        identifier.set("this", identifier.name.lower())
        identifier.set("quoted", False)
    return copy


def _column_problem(statement: exp.Expr, names: StatementNames, schema: Schema) -> str:
    """Check a statement that writes: each column must exist in its table, or in some table of the statement."""
    anywhere = {column for name in names.names for column in schema.columns(name)}
    anywhere |= {alias.alias.lower() for alias in statement.find_all(exp.Alias)}
    for column in statement.find_all(exp.Column):
        table = names.table_for(column.table) if column.table else ""
        columns = set(schema.columns(table)) if table else anywhere
        if is_proposed(column) or isinstance(column.this, exp.Star):
            continue
        if column.name.lower() not in columns and (table or not column.table):
            return f"column `{column.name}` is not in the schema"
    for name, listed in written_columns(statement, names):
        if listed.lower() not in schema.columns(name):
            return f"column `{listed}` is not in table `{name}`"
    return ""
