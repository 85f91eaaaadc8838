"""Reads of columns that a statement does not name: whole rows, stars under other names, positions, natural joins."""

import re
from collections.abc import Iterator

from sqlglot import TokenType, exp

from qwed.engines._sql.columns import find_stars, is_natural, is_output_alias, selects_above, tables_of_star
from qwed.engines._sql.parse import MAX_DEPTH, ParsedSql
from qwed.engines._sql.permissions import AccessLimits
from qwed.engines._sql.table_names import QUERY_SCOPES, StatementNames

_ROW_DIALECTS = frozenset({"", "postgres", "materialize", "risingwave", "redshift", "duckdb", "bigquery"})
"""Dialects in which the name of a table is a value: its whole row."""
_ROW_FUNCTIONS = frozenset(
    """
    to_json to_jsonb row_to_json json_agg jsonb_agg array_agg array_to_json hstore record_out quote_literal
    quote_nullable concat any_value xmlforest json_build_array jsonb_build_array format_row record_send json_agg_strict
    jsonb_agg_strict json_build_object jsonb_build_object any_out anyelement_out anynonarray_out anycompatible_out
    anycompatiblenonarray_out hash_record
    """.split()  # noqa: SIM905 - a table of words reads better than a list of literals
)
"""Functions of a row, which PostgreSQL also calls as `u.to_jsonb`."""
_ROW_AGGREGATES = frozenset({"min", "max"})
"""Functions of a row that are likely names of columns: they count only where the permissions limit the columns."""
_STAR_FUNCTIONS = (exp.Count, exp.CountIf, exp.Columns)
_STAR_NAMES = frozenset({"count", "count_big", "count_star", "hash", "hash_agg", "checksum", "binary_checksum"})
"""Functions of `*` that reveal no value."""


_PSEUDO = frozenset(
    """
    dummy level rownum rowid sysdate systimestamp user uid sessiontimezone dbtimezone ora_database_name nextval currval
    connect_by_isleaf connect_by_iscycle current_date current_timestamp localtimestamp
    """.split()  # noqa: SIM905 - a table of words reads better than a list of literals
)
"""Names that Oracle knows without a table; a sequence has an effect of its own."""


def unnamed_read(parsed: ParsedSql, names: StatementNames, limits: AccessLimits) -> str:
    """Return what reads columns without naming them, other than a plain `SELECT *`, or the empty string."""
    statement = parsed.statements[0]
    checks = (_nested_star, _renamed_star, _table_command)
    problem = next((text for check in checks if (text := check(parsed, names))), "")
    problem = problem or _position(parsed, names, limits)
    return problem or _whole_row(statement, names, limits) or _call_without_parentheses(statement, names, limits)


def _call_without_parentheses(statement: exp.Expr, names: StatementNames, limits: AccessLimits) -> str:
    """Return a name that Oracle can only call as a function, because `dual` has no such column."""
    if limits.target not in {"", "oracle"}:
        return ""
    for table in statement.find_all(exp.Table):
        select = table.parent_select
        if table.name.lower() != "dual" or not isinstance(select, exp.Select) or select.args.get("joins"):
            continue
        for column in select.find_all(exp.Column):
            known = (
                isinstance(column.this, exp.Star) or column.name.lower() in _PSEUDO or names.is_derived(column.table)
            )
            if not known and column.parent_select is select:
                return column.sql()
    return ""


def _nested_star(parsed: ParsedSql, _names: StatementNames) -> str:
    for star in parsed.statements[0].find_all(exp.Star, exp.Columns):
        if isinstance(star.parent, exp.Pivot):
            return "UNPIVOT"  # It puts the values of all columns under one name.
        if isinstance(star, exp.Columns):
            if not isinstance(star.this, exp.Star):
                return "COLUMNS"
            continue
        holder = star.parent if isinstance(star.parent, exp.Column) else star
        if isinstance(holder.parent, exp.Distinct):
            holder = holder.parent
        parent = holder.parent
        plain = isinstance(parent, exp.Select | exp.Returning | exp.Insert | exp.When | None)
        named = isinstance(parent, exp.Func) and (parent.name or parent.sql_name()).lower() in _STAR_NAMES
        if not plain and not named and not isinstance(parent, _STAR_FUNCTIONS):
            return "*"
    return ""


def _renamed_star(parsed: ParsedSql, names: StatementNames) -> str:
    """Return `*` if its columns get other names: by a list of columns, or by the other branch of a UNION."""
    statement = parsed.statements[0]
    if not names.has_node(exp.TableAlias, exp.SetOperation):
        return ""
    stars = _StarSources(statement, names)
    for alias in statement.find_all(exp.TableAlias):
        if alias.args.get("columns") and alias.parent is not None and stars.is_starred(stars.body_of(alias.parent)):
            return "*"
    for union in statement.find_all(exp.SetOperation):
        # Each chain of set operations is looked at once, from its top.
        if not isinstance(union.parent, exp.SetOperation):
            starred = {stars.is_branch_starred(branch) for branch in _branches(union)}
            if len(starred) > 1:
                return "*"
    return ""


def _branches(query: exp.Expr) -> Iterator[exp.Expr]:
    """Yield the queries of a chain of set operations, without recursion."""
    pending = [query]
    while pending:
        node = pending.pop().unnest()
        if isinstance(node, exp.SetOperation):
            pending += [node.this, node.expression]
        elif isinstance(node, exp.Subquery):
            pending.append(node.this)
        else:
            yield node


class _StarSources:
    """Queries of a statement of which the output has a `*` of a table, directly or through a subquery or a CTE."""

    def __init__(self, statement: exp.Expr, names: StatementNames) -> None:
        self._names = names
        self._ctes = {cte.alias.lower(): cte.this for cte in statement.find_all(exp.CTE)}
        self._known: dict[int, bool] = {}

    def body_of(self, source: exp.Expr) -> exp.Expr | None:
        """Return the query behind a subquery, a CTE or the name of a CTE, or None."""
        if isinstance(source, exp.Subquery | exp.CTE):
            body: exp.Expr = source.this
            return body
        return self._ctes.get(source.name.lower()) if isinstance(source, exp.Table) else None

    def is_starred(self, body: exp.Expr | None, depth: int = 0) -> bool:
        """Return True if the output of a query has a `*` of a table; also if that cannot be followed."""
        if body is None or depth > MAX_DEPTH:
            return body is not None
        if id(body) not in self._known:
            self._known[id(body)] = False  # A recursive CTE has no more columns than its first part.
            self._known[id(body)] = any(self.is_branch_starred(branch, depth) for branch in _branches(body))
        return self._known[id(body)]

    def is_branch_starred(self, branch: exp.Expr, depth: int = 0) -> bool:
        """Return True for TABLE, for a `*` of a table, and for one of a subquery or CTE with such a star."""
        if isinstance(branch, exp.Table):
            return True
        stars = [cell for cell in branch.expressions if cell.is_star]
        if any(tables_of_star(star, self._names) for star in stars):
            return True
        bodies = (self.body_of(source) for source in _sources(branch)) if stars else ()
        return any(self.is_starred(body, depth + 1) for body in bodies)


def _sources(select: exp.Expr) -> Iterator[exp.Expr]:
    """Yield what a SELECT reads from."""
    joins = select.args.get("joins") or ()
    for clause in (select.args.get("from_"), *joins):
        if isinstance(clause, exp.Expr):
            yield clause.this


def _position(parsed: ParsedSql, names: StatementNames, limits: AccessLimits) -> str:
    """Return a column that is named by its position: `#1` in DuckDB, `$1` in Snowflake.

    Where no database is known, `$1` counts only as an output of its own: elsewhere it is a parameter to most databases.
    """
    statement = parsed.statements[0]
    if names.has_node(exp.PositionalColumn):
        return "#1"
    if "$" not in parsed.text:
        return ""
    if "snowflake" not in {limits.target or "snowflake", parsed.dialect} or not _reads_a_table(names):
        return ""
    named = statement.find_all(exp.Parameter, exp.Placeholder, exp.Column)
    numbered = [node for node in named if _is_numbered(node)]
    return next((node.name for node in numbered if limits.target or _is_output(node)), "")


def _is_numbered(node: exp.Expr) -> bool:
    """Return True for `$1`, which the parser takes for a parameter in some dialects and for a name in others."""
    return re.fullmatch(r"\$\d+" if isinstance(node, exp.Column) else r"\$?\d+", node.name) is not None


def _is_output(node: exp.Expr) -> bool:
    """Return True for a part of what a SELECT returns, if no column is named beside it."""
    while node.parent is not None and not isinstance(node.parent, exp.Select):
        node = node.parent
    if node.parent is None or node.arg_key != "expressions":
        return False
    return all(_is_numbered(column) for column in node.find_all(exp.Column))


def _reads_a_table(names: StatementNames) -> bool:
    return any("@" not in name for name in names.names)


def _table_command(parsed: ParsedSql, _names: StatementNames) -> str:
    """Return TABLE if it stands in place of a SELECT."""
    tokens = parsed.tokens
    for index, token in enumerate(tokens[:-1]):
        if token.token_type is TokenType.TABLE and tokens[index + 1].token_type is not TokenType.L_PAREN:
            before = tokens[index - 1].token_type if index else None
            if before in _QUERY_STARTS and isinstance(parsed.statements[0], exp.Query):
                return "TABLE"
    return ""


_QUERY_STARTS = frozenset(
    {None, TokenType.L_PAREN, TokenType.UNION, TokenType.ALL, TokenType.EXCEPT, TokenType.INTERSECT, TokenType.DISTINCT}
)


def _whole_row(statement: exp.Expr, names: StatementNames, limits: AccessLimits) -> str:
    """Return a name that stands for a row of a table, or that PostgreSQL calls as a function of it."""
    if limits.target not in _ROW_DIALECTS:
        return ""
    rows = _RowSources(statement, names)
    for column in statement.find_all(exp.Column):
        name = column.name.lower()
        if isinstance(column.this, exp.Star) or column.find_ancestor(exp.Hint) or _is_listed(name, names, limits):
            continue
        if column.table:
            functions = _ROW_FUNCTIONS | _ROW_AGGREGATES if limits.explicit else _ROW_FUNCTIONS
            is_call = name in functions and rows.has(column, column.table.lower())
            if is_call or _names_its_table(column, names):
                return f"{column.table}.{name}"
        elif rows.has(column, name) and not is_output_alias(column) and not _is_matched(column):
            return name
    return ""


def _is_matched(column: exp.Expr) -> bool:
    """Return True for `docs MATCH 'x'`, the full-text search of SQLite, which reads no value."""
    return isinstance(column.parent, exp.Match) and column.arg_key == "this"


class _RowSources:
    """Names that stand for whole rows: of tables, and of subqueries that read all columns of one."""

    def __init__(self, statement: exp.Expr, names: StatementNames) -> None:
        real = {id(table) for table in names.tables}
        stars = _StarSources(statement, names)
        self._owners: dict[str, set[int]] = {}
        for source in statement.find_all(exp.Table, exp.Subquery):
            if id(source) in real or stars.is_starred(stars.body_of(source)):
                owner = source.find_ancestor(*QUERY_SCOPES)
                self._owners.setdefault(source.alias_or_name.lower(), set()).add(id(owner))

    def has(self, column: exp.Expr, name: str) -> bool:
        """Return True if the name stands for a row where the column is."""
        owners = self._owners.get(name)
        return owners is not None and any(id(select) in owners for select in selects_above(column))


def _names_its_table(column: exp.Column, names: StatementNames) -> bool:
    """Return True for `public.users` as a value, where `public` is no table but the schema of one."""
    qualifier = column.table.lower()
    return not names.table_for(qualifier) and not names.is_derived(qualifier) and bool(names.table_for(column.name))


def _is_listed(name: str, names: StatementNames, limits: AccessLimits) -> bool:
    schema = limits.schema
    return schema is not None and any(name in schema.columns(table) for table in names.names)


def unlisted_star(statement: exp.Expr, names: StatementNames, limits: AccessLimits) -> str:
    """Return the table of which a `*` or a natural join reads columns that nothing lists, or the empty string."""
    if any(map(is_natural, statement.find_all(exp.Join))):
        return "`NATURAL JOIN`"
    schema = limits.schema
    for star in find_stars(statement):
        for table in tables_of_star(star, names):
            name = names.name_of(table)
            if schema is None or schema.tables.get(name) is None:
                return f"`*` of `{name}`"
    return ""
