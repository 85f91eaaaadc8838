"""Columns that a statement reads and writes, and its stars."""

from collections.abc import Callable, Iterator

from sqlglot import exp

from qwed.engines._sql.field_paths import field_reader, fields_in
from qwed.engines._sql.table_names import QUERY_SCOPES, StatementNames, table_name

ColumnListing = Callable[[str], tuple[str, ...]]
_WHOLE_TABLES = (exp.Summarize, exp.Pivot, exp.Copy)
"""Nodes that read every column of the table they name."""
STAR_NODES = (exp.Star, exp.Columns, *_WHOLE_TABLES)
"""Nodes that may stand for columns."""


def columns_read(statement: exp.Expr) -> Iterator[tuple[exp.Expr, str]]:
    """Yield every node that reads a column, with the folded name; mere assignment targets are left out."""
    matched: exp.Expr | None = None
    for node in statement.walk():
        reader = field_reader(type(node))  # type: ignore[arg-type]  # a class is hashable, mypy asks for its instances
        if reader is not None:
            yield from ((node, field.lower()) for field in fields_in(reader(node)))
        if isinstance(node, exp.Column) and not isinstance(node.this, exp.Star):
            if not _is_not_read(node) and not is_proposed(node):
                yield node, node.name.lower()
        elif isinstance(node, exp.Dot) and isinstance(node.expression, exp.Identifier):
            yield node, node.expression.name.lower()
        else:
            matched = node if is_natural(node) else matched
            yield from ((node, field.lower()) for field in _names_in(node))
    if matched is not None:
        yield from ((matched, name.lower()) for name in _output_names(statement))


def all_columns_read(statement: exp.Expr, names: StatementNames) -> list[tuple[exp.Expr, str]]:
    """Return what `columns_read` yields for the whole statement, which is looked for once."""
    if names.columns_read is None:
        names.columns_read = list(columns_read(statement))
    return names.columns_read


def is_natural(join: exp.Expr) -> bool:
    """Return True for a join that compares every column of the same name."""
    return isinstance(join, exp.Join) and join.method.upper() == "NATURAL"


def _output_names(statement: exp.Expr) -> Iterator[str]:
    """Yield the names that a statement gives to columns."""
    for alias in statement.find_all(exp.Alias, exp.TableAlias):
        yield from (item.name for item in alias.columns) if isinstance(alias, exp.TableAlias) else [alias.alias]


def _names_in(node: exp.Expr) -> list[str]:
    """Return columns and fields named outside a column reference: USING, COPY, `x['name']`, a path into JSON."""
    if isinstance(node, exp.Join):
        return [item.name for item in node.args.get("using") or ()]
    if isinstance(node, exp.Copy):
        return [item.name for item in node.this.expressions] if isinstance(node.this, exp.Schema) else []
    if isinstance(node, exp.Bracket):
        return [item.name for item in node.expressions if isinstance(item, exp.Literal) and item.is_string]
    if isinstance(node, exp.StructExtract):
        return [node.expression.name]
    if isinstance(node, exp.JSONBExtract | exp.JSONBExtractScalar) and isinstance(node.expression, exp.Literal):
        return [name.strip(' "') for name in node.expression.name.strip("{}").split(",")]
    if isinstance(node, exp.Alias) and isinstance(node.args.get("alias"), exp.Placeholder):
        return [node.args["alias"].name]  # `data:name` of Snowflake, where no dialect is known.
    return [str(node.this)] if isinstance(node, exp.JSONPathKey) else []


def is_proposed(column: exp.Column) -> bool:
    """Return True for `excluded.name` in ON CONFLICT: a value of the row that could not be inserted."""
    return column.table.lower() == "excluded" and column.find_ancestor(exp.OnConflict) is not None


def _is_not_read(column: exp.Expr) -> bool:
    """Return True if no value is read: left of the `=` in SET, in an INSERT list, in `* EXCEPT`, in a definition."""
    target = column.parent if isinstance(column.parent, exp.Tuple | exp.Paren) else column
    holder = target.parent
    if isinstance(holder, exp.Insert):
        return target.arg_key == "this"
    if isinstance(holder, exp.EQ) and target.arg_key == "this" and holder.arg_key == "expressions":
        return isinstance(holder.parent, exp.Update | exp.OnConflict)
    if isinstance(holder, exp.Star):
        return True
    definition = column.find_ancestor(exp.ColumnDef, exp.Constraint)
    return definition is not None and definition.find_ancestor(exp.Create, exp.Alter) is not None


def written_columns(statement: exp.Expr, names: StatementNames) -> Iterator[tuple[str, str]]:
    """Yield (table, column) for each column an INSERT lists."""
    for insert in statement.find_all(exp.Insert):
        if isinstance(insert.this, exp.Schema) and isinstance(insert.this.this, exp.Table):
            target = names.name_of(insert.this.this)
            yield from ((target, column.name) for column in insert.this.expressions)


def find_stars(statement: exp.Expr) -> Iterator[exp.Expr]:
    """Yield each `*`, or other node, that stands for columns.

    A `*` in COUNT(*) or EXISTS reads no value.
    """
    for node in statement.find_all(*STAR_NODES):
        if isinstance(node, _WHOLE_TABLES):
            if _reads_whole_table(node):
                yield node
            continue
        holder = node.parent if isinstance(node.parent, exp.Column) else node
        if isinstance(holder.parent, exp.Count | exp.Columns):
            continue
        select = holder.parent
        if isinstance(select, exp.Select) and isinstance(select.parent, exp.Exists):
            continue
        yield holder


def _reads_whole_table(node: exp.Expr) -> bool:
    """Return True unless a list names the columns: of COPY, or of the groups of a PIVOT, or of the SELECT around it."""
    if isinstance(node, exp.Pivot):
        return node.this is not None and node.args.get("group") is None
    return isinstance(node.this, exp.Table)


def star_sources(
    statement: exp.Expr, names: StatementNames, listing: ColumnListing
) -> Iterator[tuple[str, frozenset[str]]]:
    """Yield (table, excluded columns) for each real table that a `*` or a whole-row reference expands."""
    for holder in find_stars(statement):
        for table in tables_of_star(holder, names):
            yield names.name_of(table), excluded_columns(holder)
    for node, name in columns_read(statement):
        table_behind = names.table_for(name) if isinstance(node, exp.Column) and not node.table else ""
        if table_behind and not any(name in listing(table) for table in names.names):
            yield table_behind, frozenset()


def excluded_columns(holder: exp.Expr) -> frozenset[str]:
    """Return the names in `* EXCEPT (...)`."""
    star = holder.this if isinstance(holder, exp.Column) else holder
    listed = star.args.get("except_") if isinstance(star, exp.Star) else None
    return frozenset(column.name.lower() for column in listed or ())


def tables_of_star(holder: exp.Expr, names: StatementNames) -> list[exp.Table]:
    """Return the real tables of a star: those of its SELECT, or the target of its RETURNING."""
    if isinstance(holder, _WHOLE_TABLES):
        own = {id(table) for table in holder.this.find_all(exp.Table)}
        around = holder.find_ancestor(*QUERY_SCOPES)
        scopes = {id(holder), id(around)}
        return [table for table in names.tables if id(table) in own and id(names.scope_of(table)) in scopes]
    scope = holder.find_ancestor(exp.Select, exp.Returning)
    if scope is None:
        return list(names.tables)
    owner = scope.parent if isinstance(scope, exp.Returning) else scope
    qualifier = holder.table.lower() if isinstance(holder, exp.Column) else ""
    if not qualifier:
        return list(names.tables_in(owner))
    # `u.*` may also mean a table of an outer query.
    tables = [table for query in (owner, *selects_above(holder)) for table in names.tables_in(query)]
    return [table for table in tables if table.alias_or_name.lower() == qualifier]


def is_derived(node: exp.Expr, names: StatementNames) -> bool:
    """Return True if the column comes from a subquery, a CTE or an alias of this query; each has its own checks."""
    if not isinstance(node, exp.Column):
        return False
    if node.table:
        return names.is_derived(node.table)
    return is_output_alias(node) or not any(_direct_tables(select, names) for select in selects_above(node))


def is_output_alias(node: exp.Column) -> bool:
    clause = node.find_ancestor(exp.Order, exp.Group, exp.Having, exp.Qualify, exp.Select)
    if clause is None or isinstance(clause, exp.Select):
        return False
    query = clause.parent
    outputs = query.expressions if isinstance(query, exp.Select) else ()
    return any(isinstance(output, exp.Alias) and output.alias.lower() == node.name.lower() for output in outputs)


def selects_above(node: exp.Expr) -> Iterator[exp.Expr]:
    owner = node.find_ancestor(*QUERY_SCOPES)
    while owner is not None:
        yield owner
        owner = owner.find_ancestor(*QUERY_SCOPES)


def _direct_tables(owner: exp.Expr, names: StatementNames) -> bool:
    return any(table_name(table) and names.scope_of(table) is owner for table in names.tables)
