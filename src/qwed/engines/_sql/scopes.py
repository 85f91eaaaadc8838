"""Conditions of a statement and the scope of its subqueries."""

from collections.abc import Iterator
from typing import NamedTuple

from sqlglot import exp

from qwed.engines._sql.introspection import is_system_variable
from qwed.engines._sql.table_names import StatementNames

CLAUSES = (exp.Where, exp.Having, exp.Qualify, exp.Join)
PLACEHOLDERS = (exp.Placeholder, exp.Parameter)
_COMPARISONS = (exp.EQ, exp.NEQ, exp.GT, exp.GTE, exp.LT, exp.LTE)


class ConditionTerm(NamedTuple):
    """One condition that is combined with others by AND, OR and NOT."""

    node: exp.Expr
    first: bool
    """True for the first condition of its clause."""
    under_or: bool
    negated: bool


def conditions(statement: exp.Expr) -> Iterator[exp.Expr]:
    """Yield the condition of each WHERE, HAVING, QUALIFY and ON."""
    for clause in statement.find_all(*CLAUSES):
        condition = clause.args.get("on") if isinstance(clause, exp.Join) else clause.this
        if isinstance(condition, exp.Expr):
            yield condition


def condition_terms(condition: exp.Expr) -> list[ConditionTerm]:
    """Return the conditions in the order of the text, without recursion."""
    terms: list[ConditionTerm] = []
    pending = [(condition, False, False)]
    while pending:
        node, under_or, negated = pending.pop()
        node = node.unnest()
        if isinstance(node, exp.And | exp.Or | exp.Xor):
            either = under_or or not isinstance(node, exp.And)
            pending += [(node.expression, either, negated), (node.this, either, negated)]
        elif isinstance(node, exp.Not):
            pending.append((node.this, under_or, not negated))
        else:
            terms.append(ConditionTerm(node, not terms, under_or, negated))
    return terms


def orderings(statement: exp.Expr) -> Iterator[exp.Expr]:
    """Yield each term of an ORDER BY that orders rows, not those of a window."""
    for order in statement.find_all(exp.Order):
        if not isinstance(order.parent, exp.Window | exp.WithinGroup):
            yield from (term.this if isinstance(term, exp.Ordered) else term for term in order.expressions)


def subqueries(node: exp.Expr) -> list[exp.Select]:
    """Return the outermost SELECTs inside a node."""
    if node.find(exp.Select) is None:
        return []
    selects: list[exp.Select] = []
    pending = [node]
    while pending:
        child = pending.pop()
        if isinstance(child, exp.Select):
            selects.append(child)
        else:
            pending += list(child.iter_expressions())
    return selects


def reads_tables(select: exp.Expr, names: StatementNames) -> bool:
    """Return True if the SELECT reads a real table; `dual` does not count."""
    real = {id(table) for table in names.tables}
    return any(id(table) in real for table in select.find_all(exp.Table))


def is_uncorrelated(select: exp.Expr) -> bool:
    """Return True if a subquery certainly does not depend on the outer row: all names in it are its own."""
    own = {table.alias_or_name.lower() for table in select.find_all(exp.Table)}
    own |= {alias.name.lower() for alias in select.find_all(exp.TableAlias)}
    if any(column.table and column.table.lower() not in own for column in select.find_all(exp.Column)):
        return False
    if select.find(*PLACEHOLDERS) is not None:
        return False
    return not any(_may_be_correlated(comparison) for comparison in select.find_all(*_COMPARISONS))


def _may_be_correlated(comparison: exp.Expr) -> bool:
    """Return True for two columns of which one is unqualified: it may belong to the outer row."""
    sides = [comparison.this.unnest(), comparison.expression.unnest()]
    return all(isinstance(side, exp.Column) for side in sides) and any(not side.table for side in sides)


def row_dependencies(node: exp.Expr, inner: list[exp.Select]) -> list[exp.Expr]:
    """Return the parts of a node that depend on rows or on the caller, outside the `inner` SELECTs."""
    skipped = {id(select) for select in inner}
    dependencies: list[exp.Expr] = []
    pending = [node]
    while pending:
        child = pending.pop()
        if id(child) in skipped or is_system_variable(child):
            continue
        if isinstance(child, exp.Column | exp.Star | exp.Placeholder | exp.Parameter):
            dependencies.append(child)
        else:
            pending += list(child.iter_expressions())
    return dependencies
