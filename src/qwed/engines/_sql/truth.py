"""What a predicate is worth before any row is read: a constant, an unknown constant, or something rows decide."""

from collections.abc import Callable
from decimal import Decimal
from enum import Enum
from functools import cache

from sqlglot import exp

from qwed.engines._sql.function_names import PURE_NAMES


class Open(Enum):
    """A value that is not known here."""

    ROW = "rows decide"
    OPAQUE = "constant, but not computed here"


Value = bool | Decimal | str | Open | None
Values = dict[int, Value]
"""By the identity of a node."""

_FROM_OUTSIDE = (
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
_CHANGING = tuple("now date time day epoch rand uuid current setting user version id priv".split())  # noqa: SIM905 - words
_MOST_LAYERS = 8
_EXACT_DIGITS = 20
"""Below this, what is computed is not rounded."""
_NEUTRAL: dict[type[exp.Expr], str] = {exp.Add: "0", exp.Sub: "0", exp.Mul: "1", exp.Div: "1", exp.DPipe: ""}
_MATCH_ALL = frozenset({"", ".*", "^", "$", "^.*$", "^.*", ".*$", "()"})
_MOMENTS = frozenset({"now", "today", "tomorrow", "yesterday", "localtime"})


def values_under(root: exp.Expr) -> Values:
    """The value of every node of the tree, children first and without recursion."""
    values: Values = {}
    for node in reversed(list(root.walk(bfs=False))):
        rule = _RULES.get(type(node), _whatever)
        values[id(node)] = rule(node, values)
    return values


def truth(value: Value) -> Value:
    """The value as a condition: True, False, None for NULL, or open."""
    if isinstance(value, Decimal):
        return value != 0
    if isinstance(value, str):
        number = _number(value)
        return Open.OPAQUE if number is None else number != 0
    return value


def always_holds(node: exp.Expr, values: Values) -> bool:
    """Whether the condition is certainly true, whatever the rows."""
    return truth(values[id(node)]) is True


def ignores_rows(node: exp.Expr, values: Values) -> bool:
    """Whether the condition is the same for every row and is not certainly false."""
    return truth(values[id(node)]) in (True, Open.OPAQUE)


def _whatever(node: exp.Expr, values: Values) -> Value:
    if isinstance(node, exp.Table) and node.name.lower() == "dual":
        return Open.OPAQUE
    outside = _is_outside(type(node))  # type: ignore[arg-type]  # a class is hashable, mypy asks for its instances
    if outside or (isinstance(node, exp.Anonymous) and not _computes(node)):
        return Open.ROW
    children = [values[id(child)] for child in node.iter_expressions()]
    return Open.ROW if Open.ROW in children else Open.OPAQUE


@cache
def _is_outside(kind: type) -> bool:
    return issubclass(kind, _FROM_OUTSIDE)


def _computes(call: exp.Expr) -> bool:
    """Whether a call gives the same value whenever it is asked the same."""
    name = call.name.lower()
    return bool(call.expressions) and name in PURE_NAMES and not any(word in name for word in _CHANGING)


def _literal(node: exp.Expr, _values: Values) -> Value:
    if node.args.get("is_string"):
        return Open.ROW if node.name.lower() in _MOMENTS else str(node.this)
    number = _number(str(node.this))
    return Open.OPAQUE if number is None else number


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
    return -value if isinstance(value, Decimal) else _whatever(node, values)


def _not(node: exp.Expr, values: Values) -> Value:
    value = truth(values[id(node.this)])
    return not value if isinstance(value, bool) else value


def _and(node: exp.Expr, values: Values) -> Value:
    return _joined(node, values, decisive=False)


def _or(node: exp.Expr, values: Values) -> Value:
    return _joined(node, values, decisive=True)


def _joined(node: exp.Expr, values: Values, *, decisive: bool) -> Value:
    sides = [truth(values[id(side)]) for side in (node.this, node.expression)]
    for answer in (decisive, Open.ROW, Open.OPAQUE, None):
        if any(side is answer for side in sides):
            return answer
    return not decisive


def _calculated(calculate: Callable[[Decimal, Decimal], Value]) -> "_Rule":
    def rule(node: exp.Expr, values: Values) -> Value:
        left, right = values[id(node.this)], values[id(node.expression)]
        if isinstance(left, Decimal) and isinstance(right, Decimal):
            return calculate(left, right)
        return _whatever(node, values)

    return rule


def _compared(compare: Callable[[int], bool], *, ordered: bool = True) -> "_Rule":
    """A comparison, told by what it makes of `left - right` being below, at or above zero."""

    def rule(node: exp.Expr, values: Values) -> Value:
        if same(node.this, node.expression):
            return compare(0)
        order = _order(values[id(node.this)], values[id(node.expression)], ordered=ordered)
        return compare(order) if isinstance(order, int) else order

    return rule


def same(left: object, right: object) -> bool:
    """Whether both sides are one expression that has one value: not two placeholders that look alike."""
    if not isinstance(left, exp.Expr) or not isinstance(right, exp.Expr):
        return False
    left, right = _core(left), _core(right)
    if isinstance(left, exp.Null) or left != right:
        return False
    return left.find(exp.Placeholder, exp.Parameter, exp.Rand, exp.Randn, exp.Uuid) is None


def _core(node: exp.Expr) -> exp.Expr:
    """The expression without what changes nothing: `x + 0`, `x * 1`, `x || ''`, `COALESCE(x, x)`."""
    for _ in range(_MOST_LAYERS):
        node = node.unnest()
        if (isinstance(node, exp.Coalesce) and all(each == node.this for each in node.expressions)) or _idle(node):
            node = node.this
        else:
            break
    return node


def _idle(node: exp.Expr) -> bool:
    other = node.args.get("expression")
    return isinstance(other, exp.Literal) and _NEUTRAL.get(type(node)) == other.name


def _order(left: Value, right: Value, *, ordered: bool = True) -> int | Open | None:
    if Open.ROW in (left, right):
        return Open.ROW
    if left is None or right is None:
        return None
    if Open.OPAQUE in (left, right):
        return Open.OPAQUE
    if isinstance(left, str) and isinstance(right, str):
        return _order_of_texts(left, right, ordered=ordered)
    first, second = _as_number(left), _as_number(right)
    if first is None or second is None:
        return Open.OPAQUE
    return (first > second) - (first < second)


def _order_of_texts(left: str, right: str, *, ordered: bool = False) -> int | Open:
    """Equal texts are equal everywhere; case, padding and which comes first differ between databases."""
    if left == right:
        return 0
    if ordered or left.strip().casefold() == right.strip().casefold():
        return Open.OPAQUE
    return 1


def _as_number(value: Value) -> Decimal | None:
    if isinstance(value, str):
        return _number(value)
    return Decimal(int(value)) if isinstance(value, bool) else value if isinstance(value, Decimal) else None


def _null_safe(node: exp.Expr, values: Values) -> Value:
    sides = (values[id(node.this)], values[id(node.expression)])
    if None in sides and Open.ROW not in sides and Open.OPAQUE not in sides:
        return sides[0] is None and sides[1] is None
    return _EQUAL(node, values)


def _is(node: exp.Expr, values: Values) -> Value:
    subject, wanted = values[id(node.this)], values[id(node.expression)]
    if isinstance(subject, Open) or isinstance(wanted, Open):
        return _whatever(node, values)
    return subject is None if wanted is None else truth(subject) is truth(wanted)


def _like(node: exp.Expr, values: Values) -> Value:
    subject, pattern = values[id(node.this)], values[id(node.expression)]
    if isinstance(pattern, str) and pattern and not pattern.strip("%") and subject is not None:
        return True
    if same(node.this, node.expression):
        return True
    if isinstance(subject, str) and isinstance(pattern, str) and not set(pattern) & set("%_\\["):
        order = _order_of_texts(subject, pattern)
        return order == 0 if isinstance(order, int) else order
    return _whatever(node, values)


def _in(node: exp.Expr, values: Values) -> Value:
    items = node.args.get("expressions") or ()
    if any(same(node.this, item) for item in items):
        return True
    orders = [_order(values[id(node.this)], values[id(item)], ordered=False) for item in items]
    if any(order == 0 and isinstance(order, int) for order in orders):
        return True
    certain = bool(orders) and all(isinstance(order, int) for order in orders)
    return False if certain else _whatever(node, values)


def _between(node: exp.Expr, values: Values) -> Value:
    subject, low, high = (node.this, node.args["low"], node.args["high"])
    if same(subject, low) and same(subject, high):
        return True
    below, above = (_order(values[id(subject)], values[id(bound)]) for bound in (low, high))
    if isinstance(below, int) and isinstance(above, int):
        return below >= 0 >= above
    return _whatever(node, values)


def _difference(node: exp.Expr, values: Values) -> Value:
    return Decimal(0) if same(node.this, node.expression) else _SUBTRACTED(node, values)


def _product(left: Decimal, right: Decimal) -> Value:
    """Exact, or not computed."""
    return left * right if left.adjusted() + right.adjusted() < _EXACT_DIGITS else Open.OPAQUE


def _quotient(left: Decimal, right: Decimal) -> Value:
    """A whole one, which all databases agree about."""
    if not right or left.adjusted() >= _EXACT_DIGITS or left % right:
        return Open.OPAQUE
    return left / right


def _matched(node: exp.Expr, values: Values) -> Value:
    """A pattern that every text matches."""
    pattern = values[id(node.expression)]
    return True if isinstance(pattern, str) and pattern in _MATCH_ALL else _whatever(node, values)


def _at_least(node: exp.Expr, values: Values) -> Value:
    """A size is never below zero."""
    size = isinstance(node.this, exp.Length | exp.Abs) and values[id(node.expression)] == Decimal(0)
    return True if size else _NOT_BELOW(node, values)


_Rule = Callable[[exp.Expr, Values], Value]
_SUBTRACTED = _calculated(lambda left, right: left - right)
_NOT_BELOW = _compared(lambda order: order >= 0)
_EQUAL = _compared(lambda order: order == 0, ordered=False)
_RULES: dict[type[exp.Expr], _Rule] = {
    exp.Literal: _literal,
    exp.Boolean: lambda node, _values: bool(node.this),
    exp.Null: lambda _node, _values: None,
    exp.Paren: _inner,
    exp.Neg: _negated,
    exp.Not: _not,
    exp.And: _and,
    exp.Or: _or,
    exp.Add: _calculated(lambda left, right: left + right),
    exp.Sub: _difference,
    exp.Mul: _calculated(_product),
    exp.Div: _calculated(_quotient),
    exp.EQ: _EQUAL,
    exp.NEQ: _compared(lambda order: order != 0, ordered=False),
    exp.GT: _compared(lambda order: order > 0),
    exp.GTE: _at_least,
    exp.RegexpLike: _matched,
    exp.RegexpILike: _matched,
    exp.LT: _compared(lambda order: order < 0),
    exp.LTE: _compared(lambda order: order <= 0),
    exp.NullSafeEQ: _null_safe,
    exp.Is: _is,
    exp.Like: _like,
    exp.ILike: _like,
    exp.In: _in,
    exp.Between: _between,
}
