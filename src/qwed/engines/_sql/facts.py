"""Facts of a statement: kinds, tables, columns, WHERE and LIMIT."""

from collections.abc import Iterable, Iterator, Sequence

from sqlglot import exp

from qwed.engines._sql.columns import (
    STAR_NODES,
    all_columns_read,
    find_stars,
    is_natural,
    tables_of_star,
    written_columns,
)
from qwed.engines._sql.constant_folding import ignores_rows, values_under
from qwed.engines._sql.effects import STATEMENTS, statement_name
from qwed.engines._sql.parse import ParsedSql
from qwed.engines._sql.permissions import AccessLimits
from qwed.engines._sql.repair import stated_rows
from qwed.engines._sql.table_names import (
    AMBIGUOUS,
    StatementNames,
    folds_to,
    is_other_spelling,
    schema_of,
    spelled_name,
    table_name,
)
from qwed.model import Effect, EffectKind
from qwed.model.facts import SqlFacts, bounded

ALL_COLUMNS = "*"
CALL = "call"
"""Kind of a statement that only reads by its words, but calls a function that changes something."""
_READING_KINDS = frozenset({"select", "values", "show", "describe", "summarize", "explain"})
_REMOVING_KINDS = frozenset({"delete", "drop", "truncate", "merge"})
_HARMLESS = frozenset({EffectKind.READ, EffectKind.SECRET, EffectKind.UNRESOLVED})
_NESTED = (
    *(kind for kind, name in STATEMENTS.items() if name.lower() not in _READING_KINDS),
    exp.Into,
    exp.OnConflict,
)
"""Nodes by which a statement does more than its first word says."""
_WITH_TARGETS = (
    exp.DML,
    exp.DDL,
    exp.Alter,
    exp.OnConflict,
    exp.ColumnDef,
    exp.Constraint,
    exp.Merge,
    exp.Star,
    exp.Command,
)
"""Nodes with columns that are named and not read."""
_ROW_STATEMENTS = (exp.Select, exp.Update, exp.Delete)

UNREAD = SqlFacts(complete=False)
"""Facts of a text that is not read."""


def facts_of(
    parsed: ParsedSql, names: StatementNames, limits: AccessLimits, effects: Sequence[Effect], *, resolved: bool
) -> SqlFacts:
    """Return the facts of one statement; `resolved` says if its effects are certain."""
    statement = parsed.statements[0]
    statements, _ = bounded(_kinds(parsed, names, effects))
    tables, all_tables = bounded(_tables(statement, names, limits.target))
    columns, all_columns = bounded(_columns(statement, names, limits))
    known = resolved and all_tables and all_columns and AMBIGUOUS not in tables and ALL_COLUMNS not in columns
    return SqlFacts(
        complete=known and all(effect.kind is not EffectKind.UNRESOLVED for effect in effects),
        statements=statements,
        tables=tables,
        columns=columns,
        has_where=_has_where(statement, names),
        limit=_limit(statement),
    )


def facts_of_stack(statements: Sequence[exp.Expr]) -> SqlFacts:
    """Return the facts of stacked statements, which are refused in any case."""
    names = [StatementNames(statement) for statement in statements]
    kinds, _ = bounded(statement_name(statement).lower() for statement in statements)
    tables, _ = bounded(name for each in names for name in each.names)
    return SqlFacts(complete=False, statements=kinds, tables=tables)


def _kinds(parsed: ParsedSql, names: StatementNames, effects: Iterable[Effect]) -> list[str]:
    """Return the kinds of the statement and of the statements inside it that change data."""
    statement = parsed.statements[0]
    kinds = [parsed.prefix.lower()] if parsed.prefix else []
    kinds.append(statement_name(statement).lower())
    nested: Iterable[exp.Expr] = statement.find_all(*_NESTED, bfs=False) if names.has_node(*_NESTED) else ()
    for node in nested:
        if isinstance(node, exp.Into):
            kinds.append("create")
        elif isinstance(node, exp.OnConflict):
            kinds += ["update"] if node.expressions else []
        elif node is not statement:
            kinds.append(statement_name(node).lower())
    changes = {effect.kind for effect in effects if effect.kind not in _HARMLESS}
    if changes and _READING_KINDS.issuperset(kinds):
        kinds.append(CALL)
    if EffectKind.DELETE in changes and _REMOVING_KINDS.isdisjoint(kinds):
        kinds.append("delete")
    return kinds


def _tables(statement: exp.Expr, names: StatementNames, target: str) -> Iterator[str]:
    """Yield every table, and once more as it is spelled where that may be another table than the plain name."""
    for table in names.tables:
        yield names.name_of(table)
        schema = schema_of(table, target)
        if schema:
            yield f"{schema}.{table_name(table)}"
        if is_other_spelling(table, target):
            # `"orders"` of Oracle is not ORDERS, which is listed as `orders`.
            spelled = spelled_name(table)
            yield f'"{spelled}"' if folds_to(spelled, target) else spelled
    if isinstance(statement, exp.Show):
        yield "information_schema"


def _columns(statement: exp.Expr, names: StatementNames, limits: AccessLimits) -> Iterator[str]:
    yield from (name for _, name in all_columns_read(statement, names))
    if names.has_node(*_WITH_TARGETS):
        yield from (
            column.name.lower()
            for column in statement.find_all(exp.Column, bfs=False)
            if not isinstance(column.this, exp.Star)
        )
        yield from (column.lower() for _, column in written_columns(statement, names))
        yield from (definition.name.lower() for definition in statement.find_all(exp.ColumnDef))
    if not _stands_for_all(statement, names):
        return
    if limits.schema is None or limits.schema.is_open(names) or _inserts_all(statement, names):
        yield ALL_COLUMNS
    else:
        yield from (column for _, column in limits.schema.star_columns(statement, names))


def _stands_for_all(statement: exp.Expr, names: StatementNames) -> bool:
    """Return True if something in the statement stands for all columns of a table."""
    if _inserts_all(statement, names):
        return True
    if names.has_node(exp.Join) and any(map(is_natural, statement.find_all(exp.Join))):
        return True
    return names.has_node(*STAR_NODES) and any(tables_of_star(star, names) for star in find_stars(statement))


def _inserts_all(statement: exp.Expr, names: StatementNames) -> bool:
    inserts = statement.find_all(exp.Insert) if names.has_node(exp.Insert) else ()
    return any(isinstance(insert.this, exp.Table) for insert in inserts)


def _has_where(statement: exp.Expr, names: StatementNames) -> bool:
    if not names.has_node(exp.Where) or names.has_node(exp.Merge):
        return False
    parts = [
        node
        for node in statement.find_all(*_ROW_STATEMENTS)
        if not isinstance(node, exp.Select) or names.tables_in(node)
    ]
    wheres = [node.args.get("where") for node in parts]
    # First the cheap test: many statements have a part without WHERE.
    return bool(parts) and None not in wheres and all(map(_excludes_rows, wheres))


def _excludes_rows(where: exp.Expr | None) -> bool:
    return where is not None and not ignores_rows(where.this, values_under(where.this))


def _limit(statement: exp.Expr) -> int | None:
    while isinstance(statement, exp.Subquery) and statement.args.get("limit") is None:
        statement = statement.this
    limit = statement.args.get("limit") if isinstance(statement, exp.Query) else None
    return None if limit is None else stated_rows(limit)
