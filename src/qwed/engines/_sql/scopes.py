"""Where a node of a statement stands: the conditions it is made of, and what a subquery can see."""

from collections.abc import Iterator
from typing import NamedTuple

from sqlglot import exp

from qwed.engines._sql.names import Names
from qwed.engines._sql.who import is_system_variable

CLAUSES = (exp.Where, exp.Having, exp.Qualify, exp.Join)
PLACEHOLDERS = (exp.Placeholder, exp.Parameter)
_COMPARISONS = (exp.EQ, exp.NEQ, exp.GT, exp.GTE, exp.LT, exp.LTE)


class Leaf(NamedTuple):
    """One condition that AND, OR and NOT put together."""

    node: exp.Expr
    first: bool
    """The first one of its clause."""
    under_or: bool
    negated: bool


def conditions(statement: exp.Expr) -> Iterator[exp.Expr]:
    """What follows each WHERE, HAVING, QUALIFY and ON."""
    for clause in statement.find_all(*CLAUSES):
        condition = clause.args.get("on") if isinstance(clause, exp.Join) else clause.this
        if isinstance(condition, exp.Expr):
            yield condition


def leaves(condition: exp.Expr) -> list[Leaf]:
    """The conditions in the order of the text, without recursion."""
    found: list[Leaf] = []
    waiting = [(condition, False, False)]
    while waiting:
        node, under_or, negated = waiting.pop()
        node = node.unnest()
        if isinstance(node, exp.And | exp.Or | exp.Xor):
            either = under_or or not isinstance(node, exp.And)
            waiting += [(node.expression, either, negated), (node.this, either, negated)]
        elif isinstance(node, exp.Not):
            waiting.append((node.this, under_or, not negated))
        else:
            found.append(Leaf(node, not found, under_or, negated))
    return found


def orderings(statement: exp.Expr) -> Iterator[exp.Expr]:
    """Each term of an ORDER BY that orders rows, not those of a window."""
    for order in statement.find_all(exp.Order):
        if not isinstance(order.parent, exp.Window | exp.WithinGroup):
            yield from (term.this if isinstance(term, exp.Ordered) else term for term in order.expressions)


def subqueries(node: exp.Expr) -> list[exp.Select]:
    """The outermost SELECTs inside a node."""
    if node.find(exp.Select) is None:
        return []
    found: list[exp.Select] = []
    waiting = [node]
    while waiting:
        each = waiting.pop()
        if isinstance(each, exp.Select):
            found.append(each)
        else:
            waiting += list(each.iter_expressions())
    return found


def reads_tables(select: exp.Expr, names: Names) -> bool:
    """Whether the SELECT reads a real table; `dual` is none."""
    real = {id(table) for table in names.tables}
    return any(id(table) in real for table in select.find_all(exp.Table))


def stands_alone(select: exp.Expr) -> bool:
    """Whether a subquery certainly does not depend on the row outside: all it names is its own."""
    own = {table.alias_or_name.lower() for table in select.find_all(exp.Table)}
    own |= {alias.name.lower() for alias in select.find_all(exp.TableAlias)}
    if any(column.table and column.table.lower() not in own for column in select.find_all(exp.Column)):
        return False
    if select.find(*PLACEHOLDERS) is not None:
        return False
    return not any(_perhaps_outer(each) for each in select.find_all(*_COMPARISONS))


def _perhaps_outer(comparison: exp.Expr) -> bool:
    """Two columns, one of them unqualified: it may be one of the row outside."""
    sides = [comparison.this.unnest(), comparison.expression.unnest()]
    return all(isinstance(side, exp.Column) for side in sides) and any(not side.table for side in sides)


def outside_of(node: exp.Expr, inner: list[exp.Select]) -> list[exp.Expr]:
    """What in a node comes from rows or from the caller, leaving out what stands inside the given SELECTs."""
    skipped = {id(select) for select in inner}
    found: list[exp.Expr] = []
    waiting = [node]
    while waiting:
        each = waiting.pop()
        if id(each) in skipped or is_system_variable(each):
            continue
        if isinstance(each, exp.Column | exp.Star | exp.Placeholder | exp.Parameter):
            found.append(each)
        else:
            waiting += list(each.iter_expressions())
    return found
