"""Repair of a refused query by a strictly narrower one (DESIGN 4.12)."""

from collections.abc import Iterator

from sqlglot import exp

from qwed.engines._sql.columns import columns_read, excluded_columns
from qwed.engines._sql.permissions import AccessLimits
from qwed.engines._sql.table_names import StatementNames

_MANY_ROWS = (exp.Unnest, exp.Explode, exp.Posexplode, exp.Inline, exp.GenerateSeries, exp.ExplodingGenerateSeries)
_PER_ROW = (exp.RegrValx, exp.RegrValy)
"""Functions that the parser treats as aggregates, but that databases compute for each row."""


def rows_problem(statement: exp.Expr, max_rows: int) -> str:
    """Return how to change a statement that could return more than `max_rows` rows, or the empty string."""
    if isinstance(statement, exp.DML) and not isinstance(statement, exp.Query):
        few = statement.args.get("returning") is None or _returns_few_rows(statement, max_rows)
        return "" if few else f"leave RETURNING out: it may return more than {max_rows} rows"
    if isinstance(statement, exp.Values):
        return f"list at most {max_rows} rows" if len(statement.expressions) > max_rows else ""
    return f"add LIMIT {max_rows}" if _may_exceed_rows(statement, max_rows) else ""


def row_bound(statement: exp.Expr) -> int | None:
    """Return how many rows a statement returns at most, or None if its text does not say."""
    if isinstance(statement, exp.Values):
        return len(statement.expressions)
    if isinstance(statement, exp.DML) and not isinstance(statement, exp.Query):
        if statement.args.get("returning") is None:
            return 0
        source = statement.args.get("expression") if isinstance(statement, exp.Insert) else None
        return row_bound(source) if isinstance(source, exp.Values | exp.Query) else None
    if not isinstance(statement, exp.Query):
        return 0
    if _returns_one_row(statement):
        return 1
    limit = statement.args.get("limit")
    if limit is None:
        return row_bound(statement.this) if isinstance(statement, exp.Subquery) else None
    return stated_rows(limit)


def _returns_few_rows(statement: exp.Expr, max_rows: int) -> bool:
    source = statement.args.get("expression") if isinstance(statement, exp.Insert) else None
    return isinstance(source, exp.Values | exp.Query) and not rows_problem(source, max_rows)


def _may_exceed_rows(statement: exp.Expr, max_rows: int) -> bool:
    if not isinstance(statement, exp.Query) or _returns_one_row(statement):
        return False
    limit = statement.args.get("limit")
    if limit is None and isinstance(statement, exp.Subquery):
        return _may_exceed_rows(statement.this, max_rows)
    stated = None if limit is None else stated_rows(limit)
    return stated is None or stated > max_rows


def stated_rows(limit: exp.Expr) -> int | None:
    """Return the number of rows of a plain limit; None if it is computed, a percentage, or open."""
    count = limit.args.get("count") or limit.args.get("expression")
    options = limit.args.get("limit_options")
    loose = options is not None and (options.args.get("percent") or options.args.get("with_ties"))
    if loose or limit.args.get("expressions"):
        return None
    if count is None and isinstance(limit, exp.Fetch):
        return 1
    if not isinstance(count, exp.Literal) or count.is_string or not (count.name.isascii() and count.name.isdigit()):
        return None
    return int(count.name) if len(count.name) < 19 else 10**18


def _is_open(limit: exp.Expr) -> bool:
    """Return True for LIMIT ALL and LIMIT NULL, which mean no limit."""
    count = limit.args.get("expression")
    return isinstance(count, exp.Null) or (isinstance(count, exp.Var) and count.name.upper() == "ALL")


def _returns_one_row(statement: exp.Expr) -> bool:
    """Return True if a query cannot return a second row: no table, or aggregates without groups."""
    if not isinstance(statement, exp.Select) or statement.args.get("group") or statement.find(*_MANY_ROWS):
        return False
    # An unknown function may return a set, even from the result of an aggregate.
    if any(cell.find(exp.Anonymous) for cell in statement.expressions):
        return False
    return statement.args.get("from_") is None or any(_aggregates(cell) for cell in statement.expressions)


def _aggregates(cell: exp.Expr) -> bool:
    """Return True if the cell contains an aggregate of its own SELECT, not one of a window or a subquery."""
    return any(
        function.find_ancestor(exp.Window) is None
        and function.parent_select is cell.parent_select
        and not isinstance(function, _PER_ROW)
        # `max(a, b)` is the larger of the two in each row.
        and not (isinstance(function, exp.Max | exp.Min) and function.expressions)
        for function in cell.find_all(exp.AggFunc)
    )


def narrow_query(statement: exp.Expr, names: StatementNames, limits: AccessLimits) -> exp.Query | None:
    """Return the narrower query, which the caller verifies again; None if nothing can be removed."""
    if not isinstance(statement, exp.Query):
        return None
    tree: exp.Query = statement.copy()
    if isinstance(statement, exp.Select):
        cells = _permitted_cells(statement, names, limits)
        if not cells or _depends_on_dropped(statement, cells):
            return None
        tree.set("expressions", [cell.copy() for cell in cells])
    if limits.max_rows is not None and _may_exceed_rows(tree, limits.max_rows):
        limit = tree.args.get("limit")
        # A limit that is not plain may give fewer rows than `max_rows`: replacing it could give more.
        if limit is not None and stated_rows(limit) is None and not _is_open(limit):
            return None
        tree.set("limit", exp.Limit(expression=exp.Literal.number(limits.max_rows)))
    return tree


def _permitted_cells(statement: exp.Select, names: StatementNames, limits: AccessLimits) -> list[exp.Expr]:
    cells: list[exp.Expr] = []
    for cell in statement.expressions:
        if _is_refused(cell, names, limits):
            continue
        cells += _expand_star(cell, statement, names, limits) if cell.is_star else [cell]
    return cells


def _is_refused(cell: exp.Expr, names: StatementNames, limits: AccessLimits) -> bool:
    if cell.is_star:
        return False
    for node, name in columns_read(cell):
        qualifier = node.table if isinstance(node, exp.Column) else ""
        table = names.table_for(qualifier) if qualifier else (names.names[0] if len(names.names) == 1 else "")
        if limits.is_sensitive(table, name) or not limits.column_allowed(table, name):
            return True
    return False


def _expand_star(
    cell: exp.Expr, statement: exp.Select, names: StatementNames, limits: AccessLimits
) -> Iterator[exp.Expr] | list[exp.Expr]:
    """Return the permitted columns of a `*`, or the star itself if it hides nothing or is unknown."""
    tables = [table for table in names.tables if table.find_ancestor(exp.Select) is statement]
    star = cell.this if isinstance(cell, exp.Column) else cell
    if star.args.get("replace") or star.args.get("rename"):
        return [cell]
    if limits.schema is None or any(limits.schema.tables.get(names.name_of(table)) is None for table in tables):
        return [cell]
    qualifier = cell.args["table"].name.lower() if isinstance(cell, exp.Column) and cell.table else ""
    starred_tables = [table for table in tables if not qualifier or table.alias_or_name.lower() == qualifier]
    everything = [(table, column) for table in starred_tables for column in limits.schema.columns(names.name_of(table))]
    permitted = [pair for pair in everything if _is_permitted(pair[0], pair[1], names, limits)]
    permitted = [pair for pair in permitted if pair[1] not in excluded_columns(cell)]
    if len(permitted) + len(excluded_columns(cell)) == len(everything):
        return [cell]
    prefixed = len(tables) > 1
    return [exp.column(column, table=table.alias_or_name if prefixed else None) for table, column in permitted]


def _is_permitted(table: exp.Table, column: str, names: StatementNames, limits: AccessLimits) -> bool:
    name = names.name_of(table)
    return limits.column_allowed(name, column) and not limits.is_sensitive(name, column)


def _depends_on_dropped(statement: exp.Select, cells: list[exp.Expr]) -> bool:
    """Return True if the query changes its meaning or its rows without the dropped cells."""
    dropped = [cell for cell in statement.expressions if not any(cell is other for other in cells)]
    return bool(dropped) and (
        _changes_rows(dropped, cells, statement) or _refers_by_position(statement) or _uses_alias_of(dropped, statement)
    )


def _changes_rows(dropped: list[exp.Expr], cells: list[exp.Expr], statement: exp.Select) -> bool:
    """Return True if the dropped cells change the number of rows, as aggregates and UNNEST do."""
    if any(cell.find(*_MANY_ROWS, exp.Anonymous) for cell in dropped):
        return True
    gathers = any(_aggregates(cell) for cell in dropped) and not any(_aggregates(cell) for cell in cells)
    return gathers and statement.args.get("group") is None


def _refers_by_position(statement: exp.Select) -> bool:
    """Return True if the query refers to columns by position, or to all of them at once."""
    group = statement.args.get("group")
    clauses = [clause for clause in (statement.args.get("order"), group) if clause is not None]
    items = [cell for clause in clauses for item in clause.expressions for cell in _sort_keys(item)]
    return any(isinstance(cell.unnest(), exp.Literal) for cell in items) or bool(group and group.args.get("all"))


def _uses_alias_of(dropped: list[exp.Expr], statement: exp.Select) -> bool:
    """Return True if the alias of a dropped cell is used elsewhere, where it would then name another column."""
    aliases = {cell.alias.lower() for cell in dropped if cell.alias}
    inside = {id(node) for cell in dropped for node in cell.walk()}
    return any(column.name.lower() in aliases and id(column) not in inside for column in statement.find_all(exp.Column))


def _sort_keys(item: exp.Expr) -> Iterator[exp.Expr]:
    yield item.this if isinstance(item, exp.Ordered) else item
