"""DESIGN 4.12: a strictly narrower query, where one exists."""

from collections.abc import Iterator

from sqlglot import exp

from qwed.engines._sql.access import Limits
from qwed.engines._sql.columns import columns_read, left_out
from qwed.engines._sql.names import Names

_MANY_ROWS = (exp.Unnest, exp.Explode, exp.Posexplode, exp.Inline, exp.GenerateSeries, exp.ExplodingGenerateSeries)
_PER_ROW = (exp.RegrValx, exp.RegrValy)
"""What the parser takes for aggregates and databases compute for each row."""


def rows_problem(statement: exp.Expr, max_rows: int) -> str:
    """What to change about a statement that could return more rows than the agent may have; nothing where it cannot."""
    if isinstance(statement, exp.DML) and not isinstance(statement, exp.Query):
        few = statement.args.get("returning") is None or _few_written(statement, max_rows)
        return "" if few else f"leave RETURNING out: it may return more than {max_rows} rows"
    if isinstance(statement, exp.Values):
        return f"list at most {max_rows} rows" if len(statement.expressions) > max_rows else ""
    return f"add LIMIT {max_rows}" if _too_many_rows(statement, max_rows) else ""


def _few_written(statement: exp.Expr, max_rows: int) -> bool:
    source = statement.args.get("expression") if isinstance(statement, exp.Insert) else None
    return isinstance(source, exp.Values | exp.Query) and not rows_problem(source, max_rows)


def _too_many_rows(statement: exp.Expr, max_rows: int) -> bool:
    if not isinstance(statement, exp.Query) or _one_row(statement):
        return False
    limit = statement.args.get("limit")
    if limit is None and isinstance(statement, exp.Subquery):
        return _too_many_rows(statement.this, max_rows)
    stated = None if limit is None else _stated(limit)
    return stated is None or stated > max_rows


def _stated(limit: exp.Expr) -> int | None:
    """The number of rows a limit states plainly; None where it is computed, a share, or open at its end."""
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
    """LIMIT ALL and LIMIT NULL, which say that there is none."""
    count = limit.args.get("expression")
    return isinstance(count, exp.Null) or (isinstance(count, exp.Var) and count.name.upper() == "ALL")


def _one_row(statement: exp.Expr) -> bool:
    """A query that cannot return a second row: no table, or aggregates without groups."""
    if not isinstance(statement, exp.Select) or statement.args.get("group") or statement.find(*_MANY_ROWS):
        return False
    # A function nobody takes apart may return a set, also one made of what an aggregate gathered.
    if any(cell.find(exp.Anonymous) for cell in statement.expressions):
        return False
    return statement.args.get("from_") is None or any(_aggregates(each) for each in statement.expressions)


def _aggregates(cell: exp.Expr) -> bool:
    """Whether an aggregate of this very SELECT stands in the cell, not one of a window or a subquery."""
    return any(
        function.find_ancestor(exp.Window) is None
        and function.parent_select is cell.parent_select
        and not isinstance(function, _PER_ROW)
        # `max(a, b)` is the larger of the two in each row.
        and not (isinstance(function, exp.Max | exp.Min) and function.expressions)
        for function in cell.find_all(exp.AggFunc)
    )


def repaired(statement: exp.Expr, names: Names, limits: Limits) -> exp.Query | None:
    """The narrower query, to be verified once more; None where nothing can be taken away."""
    if not isinstance(statement, exp.Query):
        return None
    tree: exp.Query = statement.copy()
    if isinstance(statement, exp.Select):
        cells = _kept(statement, names, limits)
        if not cells or _leans_on_dropped(statement, cells):
            return None
        tree.set("expressions", [cell.copy() for cell in cells])
    if limits.max_rows is not None and _too_many_rows(tree, limits.max_rows):
        limit = tree.args.get("limit")
        # Fewer rows than `max_rows` may come of a limit that is not plain: another one in its place could give more.
        if limit is not None and _stated(limit) is None and not _is_open(limit):
            return None
        tree.set("limit", exp.Limit(expression=exp.Literal.number(limits.max_rows)))
    return tree


def _kept(statement: exp.Select, names: Names, limits: Limits) -> list[exp.Expr]:
    kept: list[exp.Expr] = []
    for cell in statement.expressions:
        if _refused(cell, names, limits):
            continue
        kept += _expanded(cell, statement, names, limits) if cell.is_star else [cell]
    return kept


def _refused(cell: exp.Expr, names: Names, limits: Limits) -> bool:
    if cell.is_star:
        return False
    for node, name in columns_read(cell):
        qualifier = node.table if isinstance(node, exp.Column) else ""
        table = names.behind(qualifier) if qualifier else (names.names[0] if len(names.names) == 1 else "")
        if limits.is_sensitive(table, name) or not limits.column_allowed(table, name):
            return True
    return False


def _expanded(
    cell: exp.Expr, statement: exp.Select, names: Names, limits: Limits
) -> Iterator[exp.Expr] | list[exp.Expr]:
    """The permitted columns behind a `*`; the star itself where it hides nothing or is not known."""
    tables = [table for table in names.tables if table.find_ancestor(exp.Select) is statement]
    star = cell.this if isinstance(cell, exp.Column) else cell
    if star.args.get("replace") or star.args.get("rename"):
        return [cell]
    if limits.schema is None or any(limits.schema.tables.get(names.name_of(table)) is None for table in tables):
        return [cell]
    wanted = cell.args["table"].name.lower() if isinstance(cell, exp.Column) and cell.table else ""
    opened = [table for table in tables if not wanted or table.alias_or_name.lower() == wanted]
    everything = [(table, column) for table in opened for column in limits.schema.columns(names.name_of(table))]
    permitted = [pair for pair in everything if _permitted(pair[0], pair[1], names, limits)]
    permitted = [pair for pair in permitted if pair[1] not in left_out(cell)]
    if len(permitted) + len(left_out(cell)) == len(everything):
        return [cell]
    prefixed = len(tables) > 1
    return [exp.column(column, table=table.alias_or_name if prefixed else None) for table, column in permitted]


def _permitted(table: exp.Table, column: str, names: Names, limits: Limits) -> bool:
    name = names.name_of(table)
    return limits.column_allowed(name, column) and not limits.is_sensitive(name, column)


def _leans_on_dropped(statement: exp.Select, cells: list[exp.Expr]) -> bool:
    """Whether the rest says something else, or yields other rows, without the cells that are left out."""
    dropped = [cell for cell in statement.expressions if not any(cell is kept for kept in cells)]
    return bool(dropped) and (
        _rows_hang_on(dropped, cells, statement) or _counts_cells(statement) or _names_one_of(dropped, statement)
    )


def _rows_hang_on(dropped: list[exp.Expr], cells: list[exp.Expr], statement: exp.Select) -> bool:
    """Whether the cells make one row of many, or many of one."""
    if any(cell.find(*_MANY_ROWS, exp.Anonymous) for cell in dropped):
        return True
    gathers = any(_aggregates(cell) for cell in dropped) and not any(_aggregates(cell) for cell in cells)
    return gathers and statement.args.get("group") is None


def _counts_cells(statement: exp.Select) -> bool:
    """Whether columns are told by their position, or all of them at once."""
    group = statement.args.get("group")
    places = [each for each in (statement.args.get("order"), group) if each is not None]
    items = [cell for place in places for item in place.expressions for cell in _bare(item)]
    return any(isinstance(cell.unnest(), exp.Literal) for cell in items) or bool(group and group.args.get("all"))


def _names_one_of(dropped: list[exp.Expr], statement: exp.Select) -> bool:
    """Whether the alias of a dropped cell is used outside of it: without the alias the name would be another column."""
    aliases = {cell.alias.lower() for cell in dropped if cell.alias}
    inside = {id(node) for cell in dropped for node in cell.walk()}
    return any(column.name.lower() in aliases and id(column) not in inside for column in statement.find_all(exp.Column))


def _bare(item: exp.Expr) -> Iterator[exp.Expr]:
    yield item.this if isinstance(item, exp.Ordered) else item
