"""Constant folding of predicates: a constant, an unknown constant, or a value that depends on rows."""

from collections.abc import Callable
from decimal import Decimal
from enum import Enum
from functools import cache

from sqlglot import exp

from qwed.engines._sql.function_names import is_pure


class UnknownValue(Enum):
    """Value that is not known before execution."""

    ROW = "rows decide"
    OPAQUE = "constant, but not computed here"


Value = bool | Decimal | str | UnknownValue | None
Values = dict[int, Value]
"""Values by the identity of a node."""

_ROW_DEPENDENT = (
    exp.Column,
    exp.Table,
    exp.Star,
    exp.Placeholder,
    exp.Parameter,
    exp.SessionParameter,
    exp.Rand,
    exp.Randn,
    exp.Uuid,
    exp.CurrentDate,
    exp.CurrentDatetime,
    exp.CurrentTime,
    exp.CurrentTimestamp,
    exp.CurrentUser,
    exp.SessionUser,
    exp.CurrentRole,
    exp.CurrentDatabase,
    exp.CurrentSchema,
    exp.Localtime,
    exp.Localtimestamp,
)
MAX_DIGITS = 60
_VOLATILE_WORDS = tuple("now date time day epoch rand uuid current setting user version id priv".split())  # noqa: SIM905 - words
_MAX_LAYERS = 8
_EXACT_DIGITS = 20
"""Number of digits below which results are exact."""
_NEUTRAL: dict[type[exp.Expr], str] = {exp.Add: "0", exp.Sub: "0", exp.Mul: "1", exp.Div: "1", exp.DPipe: ""}
_MATCH_ALL = frozenset({"", ".*", "^", "$", "^.*$", "^.*", ".*$", "()"})
_MOMENTS = frozenset({"now", "today", "tomorrow", "yesterday", "localtime"})


def values_under(root: exp.Expr) -> Values:
    """Return the value of every node of the tree, children first and without recursion."""
    values: Values = {}
    for node in reversed(list(root.walk(bfs=False))):
        rule = _RULES.get(type(node), _default)
        values[id(node)] = rule(node, values)
    return values


def truth(value: Value) -> Value:
    """Return the value as a condition: True, False, None for NULL, or unknown."""
    if isinstance(value, Decimal):
        return value != 0
    if isinstance(value, str):
        number = _number(value)
        return UnknownValue.OPAQUE if number is None else number != 0
    return value


def always_holds(node: exp.Expr, values: Values) -> bool:
    """Return True if the condition is certainly true for all rows."""
    return truth(values[id(node)]) is True


def ignores_rows(node: exp.Expr, values: Values) -> bool:
    """Return True if the condition is the same for every row and not certainly false."""
    return truth(values[id(node)]) in (True, UnknownValue.OPAQUE)


def filters_nothing(clause: exp.Expr | None, values: Values) -> bool:
    """Return True for no WHERE, and for one that is only a constant and true: `WHERE 1=1`, as query builders begin it.

    A condition that names a column, as `id = id`, is not one: no program writes it.
    """
    if clause is None:
        return True
    return always_holds(clause.this, values) and clause.this.find(*_ROW_DEPENDENT, exp.Query) is None


def _default(node: exp.Expr, values: Values) -> Value:
    if isinstance(node, exp.Table) and node.name.lower() == "dual":
        return UnknownValue.OPAQUE
    outside = _is_row_dependent(type(node))  # type: ignore[arg-type]  # a class is hashable, mypy asks for its instances
    if outside or (isinstance(node, exp.Anonymous) and not _is_deterministic(node)):
        return UnknownValue.ROW
    children = [values[id(child)] for child in node.iter_expressions()]
    return UnknownValue.ROW if UnknownValue.ROW in children else UnknownValue.OPAQUE


@cache
def _is_row_dependent(kind: type) -> bool:
    return issubclass(kind, _ROW_DEPENDENT)


def _is_deterministic(call: exp.Expr) -> bool:
    """Return True if a call gives the same value for the same arguments."""
    name = call.name.lower()
    return bool(call.expressions) and is_pure(name, "") and not any(word in name for word in _VOLATILE_WORDS)


def _literal(node: exp.Expr, _values: Values) -> Value:
    if node.args.get("is_string"):
        return UnknownValue.ROW if node.name.lower() in _MOMENTS else str(node.this)
    number = _number(str(node.this))
    return UnknownValue.OPAQUE if number is None else number


def _number(text: str) -> Decimal | None:
    word = text.strip()
    if len(word) > MAX_DIGITS or not word.isascii():
        return None
    try:
        number = Decimal(word)
    except ArithmeticError:
        return None
    return number if number.is_finite() and abs(number.adjusted()) <= MAX_DIGITS else None


def _inner(node: exp.Expr, values: Values) -> Value:
    return values[id(node.this)]


def _negated(node: exp.Expr, values: Values) -> Value:
    value = values[id(node.this)]
    return -value if isinstance(value, Decimal) else _default(node, values)


def _not(node: exp.Expr, values: Values) -> Value:
    value = truth(values[id(node.this)])
    return not value if isinstance(value, bool) else value


def _and(node: exp.Expr, values: Values) -> Value:
    return _connective(node, values, decisive=False)


def _or(node: exp.Expr, values: Values) -> Value:
    return _connective(node, values, decisive=True)


def _connective(node: exp.Expr, values: Values, *, decisive: bool) -> Value:
    sides = [truth(values[id(side)]) for side in (node.this, node.expression)]
    for answer in (decisive, UnknownValue.ROW, UnknownValue.OPAQUE, None):
        if any(side is answer for side in sides):
            return answer
    return not decisive


def _arithmetic(calculate: Callable[[Decimal, Decimal], Value]) -> "_Rule":
    def rule(node: exp.Expr, values: Values) -> Value:
        left, right = values[id(node.this)], values[id(node.expression)]
        if isinstance(left, Decimal) and isinstance(right, Decimal):
            return calculate(left, right)
        return _default(node, values)

    return rule


def _comparison(compare: Callable[[int], bool], *, ordered: bool = True) -> "_Rule":
    """Return a rule for a comparison, defined by the sign of `left - right`."""

    def rule(node: exp.Expr, values: Values) -> Value:
        if is_same_value(node.this, node.expression):
            return compare(0)
        order = _order(values[id(node.this)], values[id(node.expression)], ordered=ordered)
        return compare(order) if isinstance(order, int) else order

    return rule


def is_same_value(left: object, right: object) -> bool:
    """Return True if both sides are the same expression with one value; two equal placeholders are not."""
    if not isinstance(left, exp.Expr) or not isinstance(right, exp.Expr):
        return False
    left, right = _core(left), _core(right)
    if isinstance(left, exp.Null) or left != right:
        return False
    return left.find(exp.Placeholder, exp.Parameter, exp.Rand, exp.Randn, exp.Uuid) is None


def _core(node: exp.Expr) -> exp.Expr:
    """Return the expression without neutral operations: `x + 0`, `x * 1`, `x || ''`, `COALESCE(x, x)`."""
    for _ in range(_MAX_LAYERS):
        node = node.unnest()
        if (isinstance(node, exp.Coalesce) and all(item == node.this for item in node.expressions)) or _is_neutral(
            node
        ):
            node = node.this
        else:
            break
    return node


def _is_neutral(node: exp.Expr) -> bool:
    other = node.args.get("expression")
    return isinstance(other, exp.Literal) and _NEUTRAL.get(type(node)) == other.name


def _order(left: Value, right: Value, *, ordered: bool = True) -> int | UnknownValue | None:
    if UnknownValue.ROW in (left, right):
        return UnknownValue.ROW
    if left is None or right is None:
        return None
    if UnknownValue.OPAQUE in (left, right):
        return UnknownValue.OPAQUE
    if isinstance(left, str) and isinstance(right, str):
        return _order_of_texts(left, right, ordered=ordered)
    first, second = _as_number(left), _as_number(right)
    if first is None or second is None:
        return UnknownValue.OPAQUE
    return (first > second) - (first < second)


def _order_of_texts(left: str, right: str, *, ordered: bool = False) -> int | UnknownValue:
    """Compare two texts; case, padding and sort order differ between databases, so only equality is certain."""
    if left == right:
        return 0
    if ordered or left.strip().casefold() == right.strip().casefold():
        return UnknownValue.OPAQUE
    return 1


def _as_number(value: Value) -> Decimal | None:
    if isinstance(value, str):
        return _number(value)
    return Decimal(int(value)) if isinstance(value, bool) else value if isinstance(value, Decimal) else None


def _null_safe(node: exp.Expr, values: Values) -> Value:
    sides = (values[id(node.this)], values[id(node.expression)])
    if None in sides and UnknownValue.ROW not in sides and UnknownValue.OPAQUE not in sides:
        return sides[0] is None and sides[1] is None
    return _EQUAL(node, values)


def _is(node: exp.Expr, values: Values) -> Value:
    subject, expected = values[id(node.this)], values[id(node.expression)]
    if isinstance(subject, UnknownValue) or isinstance(expected, UnknownValue):
        return _default(node, values)
    return subject is None if expected is None else truth(subject) is truth(expected)


def _like(node: exp.Expr, values: Values) -> Value:
    subject, pattern = values[id(node.this)], values[id(node.expression)]
    if isinstance(pattern, str) and pattern and not pattern.strip("%") and subject is not None:
        return True
    if is_same_value(node.this, node.expression):
        return True
    if isinstance(subject, str) and isinstance(pattern, str) and not set(pattern) & set("%_\\["):
        order = _order_of_texts(subject, pattern)
        return order == 0 if isinstance(order, int) else order
    return _default(node, values)


def _in(node: exp.Expr, values: Values) -> Value:
    items = node.args.get("expressions") or ()
    if any(is_same_value(node.this, item) for item in items):
        return True
    orders = [_order(values[id(node.this)], values[id(item)], ordered=False) for item in items]
    if any(order == 0 and isinstance(order, int) for order in orders):
        return True
    certain = bool(orders) and all(isinstance(order, int) for order in orders)
    return False if certain else _default(node, values)


def _between(node: exp.Expr, values: Values) -> Value:
    subject, low, high = (node.this, node.args["low"], node.args["high"])
    if is_same_value(subject, low) and is_same_value(subject, high):
        return True
    below, above = (_order(values[id(subject)], values[id(bound)]) for bound in (low, high))
    if isinstance(below, int) and isinstance(above, int):
        return below >= 0 >= above
    return _default(node, values)


def _difference(node: exp.Expr, values: Values) -> Value:
    return Decimal(0) if is_same_value(node.this, node.expression) else _SUBTRACT(node, values)


def _product(left: Decimal, right: Decimal) -> Value:
    """Return the exact product, or OPAQUE."""
    return left * right if left.adjusted() + right.adjusted() < _EXACT_DIGITS else UnknownValue.OPAQUE


def _quotient(left: Decimal, right: Decimal) -> Value:
    """Return an integer quotient, on which all databases agree, or OPAQUE."""
    if not right or left.adjusted() >= _EXACT_DIGITS or left % right:
        return UnknownValue.OPAQUE
    return left / right


def _regexp(node: exp.Expr, values: Values) -> Value:
    """Return True for a pattern that every text matches."""
    pattern = values[id(node.expression)]
    return True if isinstance(pattern, str) and pattern in _MATCH_ALL else _default(node, values)


def _at_least(node: exp.Expr, values: Values) -> Value:
    """Fold `>=`; a length or an absolute value is never below zero."""
    size = isinstance(node.this, exp.Length | exp.Abs) and values[id(node.expression)] == Decimal(0)
    return True if size else _GREATER_OR_EQUAL(node, values)


_Rule = Callable[[exp.Expr, Values], Value]
_SUBTRACT = _arithmetic(lambda left, right: left - right)
_GREATER_OR_EQUAL = _comparison(lambda order: order >= 0)
_EQUAL = _comparison(lambda order: order == 0, ordered=False)
_RULES: dict[type[exp.Expr], _Rule] = {
    exp.Literal: _literal,
    exp.Boolean: lambda node, _values: bool(node.this),
    exp.Null: lambda _node, _values: None,
    exp.Paren: _inner,
    exp.Neg: _negated,
    exp.Not: _not,
    exp.And: _and,
    exp.Or: _or,
    exp.Add: _arithmetic(lambda left, right: left + right),
    exp.Sub: _difference,
    exp.Mul: _arithmetic(_product),
    exp.Div: _arithmetic(_quotient),
    exp.EQ: _EQUAL,
    exp.NEQ: _comparison(lambda order: order != 0, ordered=False),
    exp.GT: _comparison(lambda order: order > 0),
    exp.GTE: _at_least,
    exp.RegexpLike: _regexp,
    exp.RegexpILike: _regexp,
    exp.LT: _comparison(lambda order: order < 0),
    exp.LTE: _comparison(lambda order: order <= 0),
    exp.NullSafeEQ: _null_safe,
    exp.Is: _is,
    exp.Like: _like,
    exp.ILike: _like,
    exp.In: _in,
    exp.Between: _between,
}
