"""Questions asked of the database, not of its data: blind, error-based, timed and counting probes."""

from collections.abc import Callable, Iterator
from decimal import Decimal

from sqlglot import exp

from qwed.engines._sql.functions import call_name
from qwed.engines._sql.names import CREDENTIAL_TABLES, Names, is_catalog
from qwed.engines._sql.scopes import (
    PLACEHOLDERS,
    Leaf,
    conditions,
    leaves,
    orderings,
    outside_of,
    reads_tables,
    stands_alone,
    subqueries,
)
from qwed.engines._sql.truth import Open, Values, truth
from qwed.engines._sql.who import ASKED_PLACES, asks_for_places, asks_who_we_are

CONSTANT = "constant_condition"
BLIND = "blind_probe"
ENVIRONMENT = "environment_probe"
ERROR = "error_probe"
CATALOG = "catalog_probe"
CREDENTIALS = "credential_table"
ORDER = "order_by_probe"
EMPTY = "empty_string_operation"
TIME_DELAY = "time_delay"

ACCOUNT_TABLES = frozenset(
    """
    users user admin admins administrator administrators account accounts member members login logins credential
    credentials secret secrets staff auth_user wp_users tbl_users tblusers user_accounts app_user app_users passwords
    employees customers sessions tokens api_keys flag flags
    """.split()  # noqa: SIM905 - a table of words reads better than a list of literals
)
MANY_ROWS = 5_000_000
MANY_BYTES = 10_000_000
MANY_COPIES = 3
FAR_POSITION = 10
_SERIES = frozenset({"generate_series", "numbers", "numbers_mt", "zeros", "zeros_mt"})
_STRETCHING = frozenset({"randomblob", "zeroblob", "repeat", "replicate", "space", "rpad", "lpad", "pad", "rand_str"})
_ERROR_NAMES = frozenset(
    """
    extractvalue updatexml gtid_subset gtid_subtract st_latfromgeohash st_longfromgeohash st_pointfromgeohash
    json_keys xmltype polygon multipoint linestring multilinestring multipolygon geometrycollection exp name_const
    getmappingxpath sn get_host_address get_host_name sqlid_to_sqlhash xmlparse
    """.split()  # noqa: SIM905 - a table of words reads better than a list of literals
)
_GLUE = (exp.DPipe, exp.Concat)
_WRITTEN = (exp.Literal, exp.HexString, exp.BitString, exp.National, exp.RawString, exp.UnicodeString, exp.Subquery)
_STOPS = ("where", "having", "limit", "joins", "laterals", "qualify")
_ARITHMETIC = (exp.Add, exp.Sub, exp.Mul, exp.BitwiseAnd, exp.BitwiseOr, exp.BitwiseXor, exp.Div, exp.Mod, exp.Pow)


def probe_violations(statement: exp.Expr, names: Names, values: Values) -> Iterator[str]:
    """The kinds of probe in a statement."""
    for condition in conditions(statement):
        found = leaves(condition)
        built = _plain_numbers(found[0].node) and not isinstance(condition.parent, exp.Having)
        template = built or condition.find(*PLACEHOLDERS) is not None or not any(map(_holds_value, found))
        alone = len(found) == 1
        if any(_idle_constant(leaf, values, template=template) for leaf in found if not alone or _two_texts(leaf.node)):
            yield CONSTANT
        for leaf in found:
            yield from _in_leaf(leaf, names, values)
    for term in orderings(statement):
        yield from _in_order(term, values)
    yield from _in_nodes(statement, names, values)
    if names.holds(*ASKED_PLACES) and asks_for_places(statement):
        yield ENVIRONMENT
    yield from _in_tables(statement, names)


def _in_leaf(leaf: Leaf, names: Names, values: Values) -> Iterator[str]:
    if _asks_environment(leaf.node):
        yield ENVIRONMENT
    if not leaf.first and _asks_blindly(leaf, names):
        yield BLIND
    if _finds(leaf.node, names, values, _constant_test, exp.If, exp.Case):
        yield CONSTANT
    if _finds(leaf.node, names, values, _bare_select, exp.Subquery):
        yield BLIND
    if _finds(leaf.node, names, values, _on_empty, *_GLUE, *_ARITHMETIC):
        yield EMPTY
    if _takes_all(leaf.node, names):
        yield CONSTANT
    if _finds(leaf.node, names, values, _for_a_value, exp.In, *_ARITHMETIC, exp.DPipe):
        yield CONSTANT


def _finds(
    node: exp.Expr, names: Names, values: Values, test: Callable[[exp.Expr, Values], bool], *kinds: type[exp.Expr]
) -> bool:
    """Whether the test holds for a node of one of these kinds in here."""
    return names.holds(*kinds) and any(test(each, values) for each in node.find_all(*kinds))


def _takes_all(node: exp.Expr, names: Names) -> bool:
    """`id IN (SELECT id FROM users)` in a query of users: every row is in it."""
    if not isinstance(node, exp.In):
        return False
    query = node.args.get("query")
    inner = query.this if isinstance(query, exp.Subquery) else query
    outer = node.parent_select
    if not isinstance(inner, exp.Select) or outer is None or set(_clauses(inner)) - {"from_", "expressions", "kind"}:
        return False
    tables = [
        [names.name_of(each) for each in select.find_all(exp.Table) if each.parent_select is select]
        for select in (inner, outer)
    ]
    same_column = [cell.name.lower() for cell in inner.expressions] == [node.this.name.lower()]
    return same_column and len(tables[1]) == 1 and tables[0] == tables[1]


def _clauses(select: exp.Expr) -> list[str]:
    return [name for name, value in select.args.items() if value]


def _for_a_value(node: exp.Expr, values: Values) -> bool:
    """A condition where a value belongs: `IN (1 AND 2=3)`, `1 ^ (1=1)`; and numbers joined like texts: `1 || 1`."""
    if isinstance(node, exp.In):
        return any(isinstance(item.unnest(), exp.And | exp.Or | exp.Xor) for item in node.expressions)
    sides = [node.this.unnest(), node.expression.unnest()]
    if isinstance(node, exp.DPipe):
        return all(isinstance(side, exp.Literal) and not side.is_string for side in sides)
    return any(isinstance(side, exp.EQ | exp.NEQ) and values[id(side)] is not Open.ROW for side in sides)


def _idle_constant(leaf: Leaf, values: Values, *, template: bool) -> bool:
    """A condition no row can change, beside others; `1=1 AND` in front, as query builders write it, is none.

    Where values come by placeholders, or a program began with `1=1`, it may say `AND 0=1` further on too.
    """
    value = truth(values[id(leaf.node)])
    if value is Open.ROW:
        return False
    holds = (not value if leaf.negated else value) if isinstance(value, bool) else None
    if holds is not None and _as_written(leaf, holds=holds):
        return False
    return not (_plain_numbers(leaf.node) and (template or (leaf.under_or and holds is False and not _xor(leaf.node))))


def _as_written(leaf: Leaf, *, holds: bool) -> bool:
    """`1=1 AND`, `1=0 OR` in front, and the words TRUE and FALSE where they decide nothing."""
    if holds is leaf.under_or or (_two_texts(leaf.node) and not leaf.under_or):
        return False
    return isinstance(leaf.node, exp.Boolean) or (leaf.first and leaf.node.find_ancestor(exp.Having) is None)


def _two_texts(node: exp.Expr) -> bool:
    """`'a' = 'b'`, which no program writes to start a condition with."""
    sides = [node.this, node.expression] if isinstance(node, exp.EQ | exp.NEQ) else []
    return bool(sides) and all(isinstance(side, exp.Literal) and side.is_string for side in sides)


def _xor(node: exp.Expr) -> bool:
    return node.find_ancestor(exp.Xor) is not None


def _plain_numbers(node: exp.Expr) -> bool:
    """`1 = 1`, `1 = 0`, `0 = 1`, which programs write."""
    sides = [node.this, node.expression] if isinstance(node, exp.EQ) else []
    return bool(sides) and all(isinstance(side, exp.Literal) and side.name in {"0", "1"} for side in sides)


def _holds_value(leaf: Leaf) -> bool:
    """Whether a value is written in it, in whose place something else could have been sent."""
    return not _plain_numbers(leaf.node) and leaf.node.find(*_WRITTEN) is not None


def _asks_environment(node: exp.Expr) -> bool:
    """Version, user or database compared with a constant: no row takes part."""
    if not asks_who_we_are(node):
        return False
    return not outside_of(node, [each for each in subqueries(node) if not each.find(exp.Table) or _from_dual(each)])


def _from_dual(select: exp.Expr) -> bool:
    return all(table.name.lower() == "dual" for table in select.find_all(exp.Table))


def _asks_blindly(leaf: Leaf, names: Names) -> bool:
    """A subquery that does not depend on the row, held against a constant: it asks about other data, bit by bit."""
    inner = subqueries(leaf.node)
    reading = [select for select in inner if reads_tables(select, names)]
    if not reading or not all(stands_alone(select) for select in inner):
        return False
    if isinstance(leaf.node, exp.Exists):
        return not leaf.negated and any(_of_accounts(select, names) for select in reading)
    return not outside_of(leaf.node, inner)


def _of_accounts(select: exp.Expr, names: Names) -> bool:
    tables = {names.name_of(table).rpartition(".")[2] for table in select.find_all(exp.Table)}
    return any(name in ACCOUNT_TABLES or is_catalog(name) for name in tables)


def _constant_test(node: exp.Expr, values: Values) -> bool:
    """`CASE WHEN 1=1 THEN ...` inside a condition."""
    if isinstance(node, exp.Case):
        return node.this is not None and values[id(node.this)] is not Open.ROW
    tested = node.parent.this if isinstance(node.parent, exp.Case) and node.parent.this else None
    return tested is None and isinstance(node.this, exp.Expr) and values[id(node.this)] is not Open.ROW


def _bare_select(node: exp.Expr, values: Values) -> bool:
    """`id = (SELECT 1)`: a subquery that reads nothing."""
    select = node.this
    if not isinstance(select, exp.Select) or isinstance(node.parent, exp.Any | exp.All | exp.From | exp.Lateral):
        return False
    if select.args.get("from_") is not None or len(select.expressions) != 1:
        return False
    return values[id(select.expressions[0])] is not Open.ROW


def _on_empty(node: exp.Expr, values: Values) -> bool:
    """`'' || x || ''` or `''-''`, as is left where a quote was closed and opened again; so with `'%'` in a LIKE."""
    if isinstance(node.parent, (*_GLUE, *_ARITHMETIC)):
        return False
    first, last = node, node
    while isinstance(first, (*_GLUE, *_ARITHMETIC)):
        first = first.expressions[0] if first.expressions else first.this
    while isinstance(last, (*_GLUE, *_ARITHMETIC)):
        last = last.expressions[-1] if last.expressions else last.expression
    if not _empty(last) or not isinstance(first, exp.Literal) or not first.is_string:
        return False
    if not _empty(first):
        # `'x' || (SELECT ...) || ''`: the value was given, and the quote behind it opened again.
        return isinstance(node, _GLUE) and not last.name and any(stands_alone(each) for each in subqueries(node))
    joined = isinstance(node, _GLUE) and bool(first.name or last.name)
    return not joined or values[id(node)] is not Open.ROW or any(stands_alone(each) for each in subqueries(node))


def _empty(node: object) -> bool:
    return isinstance(node, exp.Literal) and node.is_string and not node.name.strip("%")


def _in_order(term: exp.Expr, values: Values) -> Iterator[str]:
    if _position(term) > _columns_of(term):
        yield ORDER
    if isinstance(term, exp.Subquery) and isinstance(term.this, exp.Select) and not term.this.args.get("from_"):
        return
    inner = subqueries(term)
    if isinstance(term, exp.And | exp.Or) and any(values[id(leaf.node)] is not Open.ROW for leaf in leaves(term)):
        yield ORDER
    if inner and all(stands_alone(select) for select in inner):
        yield ORDER
    if any(_constant_test(each, values) for each in term.find_all(exp.If, exp.Case)):
        yield CONSTANT
    if _asks_environment(term):
        yield ENVIRONMENT


def _position(term: exp.Expr) -> int:
    plain = isinstance(term, exp.Literal) and not term.is_string and term.name.isascii() and term.name.isdigit()
    return int(term.name[:9]) if plain else 0


def _columns_of(term: exp.Expr) -> int:
    """How many columns there are to order by; behind a star, as many as one still counts."""
    select = term.find_ancestor(exp.Select, exp.SetOperation)
    first = select
    while isinstance(first, exp.SetOperation | exp.Subquery):
        first = first.this
    cells = first.expressions if isinstance(first, exp.Select) else []
    return FAR_POSITION - 1 if not cells or any(cell.is_star for cell in cells) else len(cells)


def _in_nodes(statement: exp.Expr, names: Names, values: Values) -> Iterator[str]:
    if _finds(statement, names, values, _by_nought, exp.Div, exp.IntDiv, exp.Mod):
        yield ERROR
    for call in statement.find_all(exp.Func) if names.holds(exp.Func) else ():
        yield from _in_call(call, values)
    if names.holds(exp.CTE) and any(_never_ends(cte) for cte in statement.find_all(exp.CTE)):
        yield TIME_DELAY
    for glued in statement.find_all(*_GLUE) if names.holds(*_GLUE) else ():
        if _on_empty(glued, values) and (subqueries(glued) or asks_who_we_are(glued)):
            yield EMPTY


def _by_nought(node: exp.Expr, values: Values) -> bool:
    divisor = values[id(node.expression)]
    return isinstance(divisor, Decimal) and divisor == 0


def _never_ends(cte: exp.Expr) -> bool:
    """A recursion over nothing but itself that no condition stops; databases stop at a LIMIT outside at best."""
    union = cte.this
    step = union.expression.unnest() if isinstance(union, exp.SetOperation) else None
    if not isinstance(step, exp.Select) or any(step.args.get(stop) for stop in _STOPS) or union.args.get("limit"):
        return False
    tables = [table.name.lower() for table in step.find_all(exp.Table)]
    outside = cte.find_ancestor(exp.Query)
    return tables == [cte.alias.lower()] and (outside is None or not (outside.args.get("limit")))


def _in_call(call: exp.Expr, values: Values) -> Iterator[str]:
    name = call_name(call)
    if name in _ERROR_NAMES and (subqueries(call) or asks_who_we_are(call)):
        yield ERROR
    if _to_number(call) and _leaks(call.expression if isinstance(call, exp.Convert) else call.this):
        yield ERROR
    series = isinstance(call, exp.GenerateSeries | exp.ExplodingGenerateSeries) or name in _SERIES
    if not series and name not in _STRETCHING:
        return
    numbers = [abs(value) for each in call.iter_expressions() if isinstance(value := values[id(each)], Decimal)]
    if max(numbers, default=Decimal(0)) >= (MANY_ROWS if series else MANY_BYTES):
        yield TIME_DELAY


def _to_number(call: exp.Expr) -> bool:
    wanted = call.this if isinstance(call, exp.Convert) else call.args.get("to")
    return isinstance(wanted, exp.DataType) and wanted.is_type(*exp.DataType.NUMERIC_TYPES)


def _leaks(value: exp.Expr) -> bool:
    """Whether casting this to a number can only mean to read it in the error message."""
    return asks_who_we_are(value) and not outside_of(value, subqueries(value))


def _in_tables(statement: exp.Expr, names: Names) -> Iterator[str]:
    if any(name in CREDENTIAL_TABLES for name in names.names):
        yield CREDENTIALS
    catalogs = [table for table in names.tables if is_catalog(names.name_of(table))]
    copies = [names.name_of(table) for table in catalogs]
    if any(copies.count(name) >= MANY_COPIES and _crossed(statement) for name in set(copies)):
        yield TIME_DELAY
    if not isinstance(statement, exp.Query) or len(catalogs) == len(names.tables):
        return
    listed = {id(table) for table in catalogs}
    homes = {id(table.parent_select) for table in names.tables if id(table) not in listed}
    if any(id(table.parent_select) not in homes for table in catalogs):
        yield CATALOG


def _crossed(statement: exp.Expr) -> bool:
    return any(not join.args.get("on") and not join.args.get("using") for join in statement.find_all(exp.Join))
