"""DESIGN 4.12: a strictly narrower query, where one exists."""

from collections.abc import Iterator

from sqlglot import exp

from qwed.engines._sql.access import Limits
from qwed.engines._sql.columns import columns_read, left_out
from qwed.engines._sql.names import Names

_MANY_ROWS = (exp.Unnest, exp.Explode, exp.Posexplode, exp.Inline, exp.GenerateSeries, exp.ExplodingGenerateSeries)


def too_many_rows(statement: exp.Expr, max_rows: int | None) -> bool:
    """Whether a query could return more rows than the agent may have."""
    if max_rows is None or not isinstance(statement, exp.Query) or _one_row(statement):
        return False
    limit = statement.args.get("limit")
    if limit is None and isinstance(statement, exp.Subquery):
        return too_many_rows(statement.this, max_rows)
    return limit is None or not _at_most(limit, max_rows)


def _at_most(limit: exp.Expr, max_rows: int) -> bool:
    count = limit.args.get("count") or limit.args.get("expression")
    options = limit.args.get("limit_options")
    loose = options is not None and (options.args.get("percent") or options.args.get("with_ties"))
    if loose or not isinstance(count, exp.Literal) or count.is_string or limit.args.get("expressions"):
        return False
    return count.name.isascii() and count.name.isdigit() and len(count.name) < 19 and int(count.name) <= max_rows


def _one_row(statement: exp.Expr) -> bool:
    """A query that cannot return a second row: no table, or aggregates without groups."""
    if not isinstance(statement, exp.Select) or statement.args.get("group") or statement.find(*_MANY_ROWS):
        return False
    if statement.args.get("from_") is None:
        return not any(True for _ in statement.find_all(exp.Anonymous))
    return any(_aggregates(each) for each in statement.expressions)


def _aggregates(cell: exp.Expr) -> bool:
    """Whether an aggregate of this very SELECT stands in the cell, not one of a window or a subquery."""
    return any(
        function.find_ancestor(exp.Window) is None and function.parent_select is cell.parent_select
        for function in cell.find_all(exp.AggFunc)
    )


def repaired(statement: exp.Expr, names: Names, limits: Limits, dialect: str) -> str | None:
    """The text of the narrower query, to be verified once more; None where nothing can be taken away."""
    if not isinstance(statement, exp.Query):
        return None
    tree: exp.Query = statement.copy()
    if isinstance(statement, exp.Select):
        cells = _kept(statement, names, limits)
        if not cells:
            return None
        if len(cells) != len(statement.expressions) and _depends_on_dropped(statement, cells):
            return None
        tree.set("expressions", [cell.copy() for cell in cells])
    if limits.max_rows is not None and too_many_rows(tree, limits.max_rows):
        tree.set("limit", exp.Limit(expression=exp.Literal.number(limits.max_rows)))
    return tree.sql(dialect=dialect, comments=False)


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


def _depends_on_dropped(statement: exp.Select, cells: list[exp.Expr]) -> bool:
    """Whether positions or dropped aliases are used elsewhere: the shorter list would mean something else."""
    places = [each for each in (statement.args.get("order"), statement.args.get("group")) if each is not None]
    if any(
        isinstance(cell.unnest(), exp.Literal) for place in places for item in place.expressions for cell in _bare(item)
    ):
        return True
    dropped = {cell.alias.lower() for cell in statement.expressions if cell.alias and cell not in cells}
    return any(column.name.lower() in dropped for place in places for column in place.find_all(exp.Column))


def _bare(item: exp.Expr) -> Iterator[exp.Expr]:
    yield item.this if isinstance(item, exp.Ordered) else item
