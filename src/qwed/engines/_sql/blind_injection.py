"""Detection of blind, error-based, time-based and column-counting injection probes."""

from collections.abc import Callable, Iterator
from decimal import Decimal

from sqlglot import exp

from qwed.engines._sql.catalog import is_catalog, is_credential_table
from qwed.engines._sql.constant_folding import UnknownValue, Values, filters_nothing, truth
from qwed.engines._sql.functions import call_name
from qwed.engines._sql.introspection import SERVER_PATH_NODES, reads_identity, reads_server_paths
from qwed.engines._sql.scopes import (
    PLACEHOLDERS,
    ConditionTerm,
    condition_terms,
    conditions,
    is_uncorrelated,
    orderings,
    reads_tables,
    row_dependencies,
    subqueries,
)
from qwed.engines._sql.table_names import StatementNames

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
_LENGTH_FUNCTIONS = frozenset(
    {"randomblob", "zeroblob", "repeat", "replicate", "space", "rpad", "lpad", "pad", "rand_str"}
)
_ERROR_NAMES = frozenset(
    """
    extractvalue updatexml gtid_subset gtid_subtract st_latfromgeohash st_longfromgeohash st_pointfromgeohash
    json_keys xmltype polygon multipoint linestring multilinestring multipolygon geometrycollection exp name_const
    getmappingxpath sn get_host_address get_host_name sqlid_to_sqlhash xmlparse
    """.split()  # noqa: SIM905 - a table of words reads better than a list of literals
)
_CONCATENATIONS = (exp.DPipe, exp.Concat)
_LITERALS = (exp.Literal, exp.HexString, exp.BitString, exp.National, exp.RawString, exp.UnicodeString, exp.Subquery)
_STOPS = ("where", "having", "limit", "joins", "laterals", "qualify")
_ARITHMETIC = (exp.Add, exp.Sub, exp.Mul, exp.BitwiseAnd, exp.BitwiseOr, exp.BitwiseXor, exp.Div, exp.Mod, exp.Pow)


def probe_violations(statement: exp.Expr, names: StatementNames, values: Values) -> Iterator[str]:
    """Yield the kinds of probe in a statement."""
    for condition in conditions(statement):
        if isinstance(condition.parent, exp.Where) and filters_nothing(condition.parent, values):
            continue
        terms = condition_terms(condition)
        built = _compares_plain_numbers(terms[0].node) and not isinstance(condition.parent, exp.Having)
        template = built or condition.find(*PLACEHOLDERS) is not None or not any(map(_has_literal, terms))
        alone = len(terms) == 1
        if any(
            _is_suspicious_constant(leaf, values, template=template)
            for leaf in terms
            if not alone or _compares_two_texts(leaf.node)
        ):
            yield CONSTANT
        for leaf in terms:
            yield from _in_leaf(leaf, names, values)
    for term in orderings(statement):
        yield from _in_order(term, values)
    yield from _in_nodes(statement, names, values)
    if names.has_node(*SERVER_PATH_NODES) and reads_server_paths(statement):
        yield ENVIRONMENT
    yield from _in_tables(statement, names)


def _in_leaf(leaf: ConditionTerm, names: StatementNames, values: Values) -> Iterator[str]:
    if _probes_environment(leaf.node):
        yield ENVIRONMENT
    if not leaf.first and _is_blind_probe(leaf, names):
        yield BLIND
    if _contains(leaf.node, names, values, _has_constant_test, exp.If, exp.Case):
        yield CONSTANT
    if _contains(leaf.node, names, values, _is_bare_select, exp.Subquery):
        yield BLIND
    if _contains(leaf.node, names, values, _operates_on_empty_text, *_CONCATENATIONS, *_ARITHMETIC):
        yield EMPTY
    if _selects_all_rows(leaf.node, names, values):
        yield CONSTANT
    if _contains(leaf.node, names, values, _is_condition_as_value, exp.In, *_ARITHMETIC, exp.DPipe):
        yield CONSTANT


def _contains(
    node: exp.Expr,
    names: StatementNames,
    values: Values,
    test: Callable[[exp.Expr, Values], bool],
    *kinds: type[exp.Expr],
) -> bool:
    """Return True if the test holds for a node of one of these kinds inside `node`."""
    return names.has_node(*kinds) and any(test(child, values) for child in node.find_all(*kinds))


def _selects_all_rows(node: exp.Expr, names: StatementNames, values: Values) -> bool:
    """Return True for `id IN (SELECT id FROM users)` in a query of users: it matches every row."""
    if not isinstance(node, exp.In):
        return False
    query = node.args.get("query")
    inner = query.this if isinstance(query, exp.Subquery) else query
    outer = node.parent_select
    if not isinstance(inner, exp.Select) or outer is None or not filters_nothing(inner.args.get("where"), values):
        return False
    if set(_clauses(inner)) - {"from_", "expressions", "kind", "where"}:
        return False
    tables = [
        [names.name_of(table) for table in select.find_all(exp.Table) if table.parent_select is select]
        for select in (inner, outer)
    ]
    same_column = [cell.name.lower() for cell in inner.expressions] == [node.this.name.lower()]
    return same_column and len(tables[1]) == 1 and tables[0] == tables[1]


def _clauses(select: exp.Expr) -> list[str]:
    return [name for name, value in select.args.items() if value]


def _is_condition_as_value(node: exp.Expr, values: Values) -> bool:
    """Return True for a condition used as a value, `IN (1 AND 2=3)` or `1 ^ (1=1)`, and for numbers joined as text."""
    if isinstance(node, exp.In):
        return any(isinstance(item.unnest(), exp.And | exp.Or | exp.Xor) for item in node.expressions)
    sides = [node.this.unnest(), node.expression.unnest()]
    if isinstance(node, exp.DPipe):
        return all(isinstance(side, exp.Literal) and not side.is_string for side in sides)
    return any(isinstance(side, exp.EQ | exp.NEQ) and values[id(side)] is not UnknownValue.ROW for side in sides)


def _is_suspicious_constant(leaf: ConditionTerm, values: Values, *, template: bool) -> bool:
    """Return True for a condition that no row can change, next to others.

    A leading `1=1 AND`, as query builders write it, does not count. In a query with placeholders, or one that begins
    with `1=1`, a later `AND 0=1` does not count either.
    """
    value = truth(values[id(leaf.node)])
    if value is UnknownValue.ROW:
        return False
    holds = (not value if leaf.negated else value) if isinstance(value, bool) else None
    if holds is not None and _is_builder_idiom(leaf, holds=holds):
        return False
    return not (
        _compares_plain_numbers(leaf.node)
        and (template or (leaf.under_or and holds is False and not _is_under_xor(leaf.node)))
    )


def _is_builder_idiom(leaf: ConditionTerm, *, holds: bool) -> bool:
    """Return True for a leading `1=1 AND` or `1=0 OR`, and for TRUE and FALSE where they decide nothing."""
    if holds is leaf.under_or or (_compares_two_texts(leaf.node) and not leaf.under_or):
        return False
    return isinstance(leaf.node, exp.Boolean) or (leaf.first and leaf.node.find_ancestor(exp.Having) is None)


def _compares_two_texts(node: exp.Expr) -> bool:
    """Return True for `'a' = 'b'`, which no program writes to start a condition."""
    sides = [node.this, node.expression] if isinstance(node, exp.EQ | exp.NEQ) else []
    return bool(sides) and all(isinstance(side, exp.Literal) and side.is_string for side in sides)


def _is_under_xor(node: exp.Expr) -> bool:
    return node.find_ancestor(exp.Xor) is not None


def _compares_plain_numbers(node: exp.Expr) -> bool:
    """Return True for `1 = 1`, `1 = 0` and `0 = 1`, which programs write."""
    sides = [node.this, node.expression] if isinstance(node, exp.EQ) else []
    return bool(sides) and all(isinstance(side, exp.Literal) and side.name in {"0", "1"} for side in sides)


def _has_literal(leaf: ConditionTerm) -> bool:
    """Return True if the condition contains a literal, in place of which input could have been injected."""
    return not _compares_plain_numbers(leaf.node) and leaf.node.find(*_LITERALS) is not None


def _probes_environment(node: exp.Expr) -> bool:
    """Return True if version, user or database is compared with a constant, without any row."""
    if not reads_identity(node):
        return False
    return not row_dependencies(
        node, [select for select in subqueries(node) if not select.find(exp.Table) or _from_dual(select)]
    )


def _from_dual(select: exp.Expr) -> bool:
    return all(table.name.lower() == "dual" for table in select.find_all(exp.Table))


def _is_blind_probe(leaf: ConditionTerm, names: StatementNames) -> bool:
    """Return True for a subquery that does not depend on the row, compared with a constant.

    Such a condition extracts other data bit by bit.
    """
    inner = subqueries(leaf.node)
    table_reads = [select for select in inner if reads_tables(select, names)]
    if not table_reads or not all(is_uncorrelated(select) for select in inner):
        return False
    if isinstance(leaf.node, exp.Exists):
        return not leaf.negated and any(_reads_accounts(select, names) for select in table_reads)
    return not row_dependencies(leaf.node, inner)


def _reads_accounts(select: exp.Expr, names: StatementNames) -> bool:
    tables = {names.name_of(table).rpartition(".")[2] for table in select.find_all(exp.Table)}
    return any(name in ACCOUNT_TABLES or is_catalog(name) for name in tables)


def _has_constant_test(node: exp.Expr, values: Values) -> bool:
    """Return True for `CASE WHEN 1=1 THEN ...` inside a condition."""
    if isinstance(node, exp.Case):
        return node.this is not None and values[id(node.this)] is not UnknownValue.ROW
    tested = node.parent.this if isinstance(node.parent, exp.Case) and node.parent.this else None
    return tested is None and isinstance(node.this, exp.Expr) and values[id(node.this)] is not UnknownValue.ROW


def _is_bare_select(node: exp.Expr, values: Values) -> bool:
    """Return True for `id = (SELECT 1)`: a subquery that reads nothing."""
    select = node.this
    if not isinstance(select, exp.Select) or isinstance(node.parent, exp.Any | exp.All | exp.From | exp.Lateral):
        return False
    if select.args.get("from_") is not None or len(select.expressions) != 1:
        return False
    return values[id(select.expressions[0])] is not UnknownValue.ROW


def _operates_on_empty_text(node: exp.Expr, values: Values) -> bool:
    """Return True for `'' || x || ''` or `''-''`, and likewise with `'%'` in a LIKE.

    Such an expression remains where injected text closed a quote and opened it again.
    """
    if isinstance(node.parent, (*_CONCATENATIONS, *_ARITHMETIC)):
        return False
    first, last = node, node
    while isinstance(first, (*_CONCATENATIONS, *_ARITHMETIC)):
        first = first.expressions[0] if first.expressions else first.this
    while isinstance(last, (*_CONCATENATIONS, *_ARITHMETIC)):
        last = last.expressions[-1] if last.expressions else last.expression
    if not _is_empty_text(last) or not isinstance(first, exp.Literal) or not first.is_string:
        return False
    if not _is_empty_text(first):
        # `'x' || (SELECT ...) || ''`: injected text follows the value, and the quote after it is open again.
        return (
            isinstance(node, _CONCATENATIONS)
            and not last.name
            and any(is_uncorrelated(select) for select in subqueries(node))
        )
    joined = isinstance(node, _CONCATENATIONS) and bool(first.name or last.name)
    return (
        not joined
        or values[id(node)] is not UnknownValue.ROW
        or any(is_uncorrelated(select) for select in subqueries(node))
    )


def _is_empty_text(node: object) -> bool:
    return isinstance(node, exp.Literal) and node.is_string and not node.name.strip("%")


def _in_order(term: exp.Expr, values: Values) -> Iterator[str]:
    if _position(term) > _columns_of(term):
        yield ORDER
    if isinstance(term, exp.Subquery) and isinstance(term.this, exp.Select) and not term.this.args.get("from_"):
        return
    inner = subqueries(term)
    if isinstance(term, exp.And | exp.Or) and any(
        values[id(leaf.node)] is not UnknownValue.ROW for leaf in condition_terms(term)
    ):
        yield ORDER
    if inner and all(is_uncorrelated(select) for select in inner):
        yield ORDER
    if any(_has_constant_test(test, values) for test in term.find_all(exp.If, exp.Case)):
        yield CONSTANT
    if _probes_environment(term):
        yield ENVIRONMENT


def _position(term: exp.Expr) -> int:
    plain = isinstance(term, exp.Literal) and not term.is_string and term.name.isascii() and term.name.isdigit()
    return int(term.name[:9]) if plain else 0


def _columns_of(term: exp.Expr) -> int:
    """Return the number of columns to order by; for a star, the largest plausible position."""
    select = term.find_ancestor(exp.Select, exp.SetOperation)
    first = select
    while isinstance(first, exp.SetOperation | exp.Subquery):
        first = first.this
    cells = first.expressions if isinstance(first, exp.Select) else []
    return FAR_POSITION - 1 if not cells or any(cell.is_star for cell in cells) else len(cells)


def _in_nodes(statement: exp.Expr, names: StatementNames, values: Values) -> Iterator[str]:
    if _contains(statement, names, values, _divides_by_zero, exp.Div, exp.IntDiv, exp.Mod):
        yield ERROR
    for call in statement.find_all(exp.Func) if names.has_node(exp.Func) else ():
        yield from _in_call(call, values)
    if names.has_node(exp.CTE) and any(_never_ends(cte) for cte in statement.find_all(exp.CTE)):
        yield TIME_DELAY
    for glued in statement.find_all(*_CONCATENATIONS) if names.has_node(*_CONCATENATIONS) else ():
        if _operates_on_empty_text(glued, values) and (subqueries(glued) or reads_identity(glued)):
            yield EMPTY


def _divides_by_zero(node: exp.Expr, values: Values) -> bool:
    divisor = values[id(node.expression)]
    return isinstance(divisor, Decimal) and divisor == 0


def _never_ends(cte: exp.Expr) -> bool:
    """Return True for a recursion over itself alone without a stop condition; at best an outer LIMIT stops it."""
    union = cte.this
    step = union.expression.unnest() if isinstance(union, exp.SetOperation) else None
    if not isinstance(step, exp.Select) or any(step.args.get(stop) for stop in _STOPS) or union.args.get("limit"):
        return False
    tables = [table.name.lower() for table in step.find_all(exp.Table)]
    outside = cte.find_ancestor(exp.Query)
    return tables == [cte.alias.lower()] and (outside is None or not (outside.args.get("limit")))


def _in_call(call: exp.Expr, values: Values) -> Iterator[str]:
    name = call_name(call)
    if name in _ERROR_NAMES and (subqueries(call) or reads_identity(call)):
        yield ERROR
    if _casts_to_number(call) and _leaks_in_error(call.expression if isinstance(call, exp.Convert) else call.this):
        yield ERROR
    series = isinstance(call, exp.GenerateSeries | exp.ExplodingGenerateSeries) or name in _SERIES
    if not series and name not in _LENGTH_FUNCTIONS:
        return
    numbers = [abs(value) for argument in call.iter_expressions() if isinstance(value := values[id(argument)], Decimal)]
    if max(numbers, default=Decimal(0)) >= (MANY_ROWS if series else MANY_BYTES):
        yield TIME_DELAY


def _casts_to_number(call: exp.Expr) -> bool:
    target = call.this if isinstance(call, exp.Convert) else call.args.get("to")
    return isinstance(target, exp.DataType) and target.is_type(*exp.DataType.NUMERIC_TYPES)


def _leaks_in_error(value: exp.Expr) -> bool:
    """Return True if a cast of this to a number only makes sense to expose it in the error message."""
    return reads_identity(value) and not row_dependencies(value, subqueries(value))


def _in_tables(statement: exp.Expr, names: StatementNames) -> Iterator[str]:
    if any(is_credential_table(name) for name in names.names):
        yield CREDENTIALS
    catalogs = [table for table in names.tables if is_catalog(names.name_of(table))]
    copies = [names.name_of(table) for table in catalogs]
    if any(copies.count(name) >= MANY_COPIES and _has_cross_join(statement) for name in set(copies)):
        yield TIME_DELAY
    if not isinstance(statement, exp.Query) or len(catalogs) == len(names.tables):
        return
    catalog_ids = {id(table) for table in catalogs}
    table_selects = {id(table.parent_select) for table in names.tables if id(table) not in catalog_ids}
    if any(id(table.parent_select) not in table_selects for table in catalogs):
        yield CATALOG


def _has_cross_join(statement: exp.Expr) -> bool:
    return any(not join.args.get("on") and not join.args.get("using") for join in statement.find_all(exp.Join))
