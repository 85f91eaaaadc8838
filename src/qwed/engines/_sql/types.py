"""Type checks of comparisons and arithmetic, with the types of a schema."""

import re
from collections.abc import Callable, Iterator
from enum import Enum
from typing import Any

from sqlglot import exp
from sqlglot.errors import SqlglotError


class SqlKind(Enum):
    """Kind of a value, as coarse as databases agree on comparing it."""

    NUMBER = "a number"
    TEXT = "a text"
    MOMENT = "a date or time"
    TRUTH = "true or false"
    OTHER = "of another type"


KindOf = Callable[[exp.Expr], SqlKind]

_LENIENT_DIALECTS = frozenset({"sqlite", "mysql"})
"""Dialects that compare a number with a text column by converting one of them."""
_T = exp.DataType.Type
_SERIALS = {_T.SERIAL, _T.BIGSERIAL, _T.SMALLSERIAL}
_KINDS: dict[Any, SqlKind] = {
    **dict.fromkeys(exp.DataType.NUMERIC_TYPES, SqlKind.NUMBER),
    **dict.fromkeys(_SERIALS, SqlKind.NUMBER),
    **dict.fromkeys(exp.DataType.TEXT_TYPES, SqlKind.TEXT),
    **dict.fromkeys(exp.DataType.TEMPORAL_TYPES, SqlKind.MOMENT),
    _T.BOOLEAN: SqlKind.TRUTH,
    _T.BIT: SqlKind.OTHER,
}
_COMPARISONS = (exp.EQ, exp.NEQ, exp.GT, exp.GTE, exp.LT, exp.LTE, exp.NullSafeEQ)
_ARITHMETIC = (exp.Mul, exp.Div, exp.Mod, exp.Add, exp.Sub)
_NUMBER = re.compile(r"\s*[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?\s*")
_MOMENT = re.compile(r"(?i)\s*(?:.*\d.*|now|today|tomorrow|yesterday|-?infinity|epoch|allballs|)\s*", re.DOTALL)
_TRUTH = frozenset({"true", "false", "t", "f", "yes", "no", "y", "n", "on", "off", "1", "0", ""})


def kind_of_type(datatype: object) -> SqlKind:
    """Return the kind of a column or a cast."""
    if isinstance(datatype, str):
        try:
            datatype = exp.DataType.build(datatype)
        except (SqlglotError, ValueError):
            return SqlKind.OTHER
    return _KINDS.get(datatype.this, SqlKind.OTHER) if isinstance(datatype, exp.DataType) else SqlKind.OTHER


def kind_of_node(node: exp.Expr) -> SqlKind:
    """Return the kind of an annotated node."""
    if isinstance(node, exp.Any | exp.All | exp.Tuple):
        return SqlKind.OTHER
    select = node.unnest() if isinstance(node, exp.Subquery) else node
    if isinstance(select, exp.Select) and len(select.expressions) == 1:
        return kind_of_type(select.expressions[0].type)
    return kind_of_type(node.type)


def type_problem(statement: exp.Expr, kind_of: KindOf, dialect: str) -> str:
    """Return a message on the first two values that cannot be compared or combined, or the empty string."""
    for node in statement.walk():
        if isinstance(node, _ARITHMETIC):
            problem = _arithmetic_problem(node, kind_of, dialect)
        else:
            problem = next((message for pair in _pairs(node) if (message := _mismatch(*pair, kind_of, dialect))), "")
        if problem:
            return problem
    return ""


def _pairs(node: exp.Expr) -> Iterator[tuple[exp.Expr, exp.Expr]]:
    if isinstance(node, _COMPARISONS):
        yield node.this.unnest(), node.expression.unnest()
    elif isinstance(node, exp.In):
        yield from ((node.this.unnest(), item.unnest()) for item in node.expressions)
    elif isinstance(node, exp.Between):
        yield from ((node.this.unnest(), node.args[bound].unnest()) for bound in ("low", "high"))


def _mismatch(left: exp.Expr, right: exp.Expr, kind_of: KindOf, dialect: str) -> str:
    if isinstance(left, exp.Literal):
        left, right = right, left
    if isinstance(left, exp.Literal):
        return ""
    left_kind = kind_of(left)
    if isinstance(right, exp.Literal) and right.is_string:
        return (
            ""
            if fits(right.name, left_kind)
            else f"{_describe(left)} is {left_kind.value} and cannot be compared with this text"
        )
    right_kind = SqlKind.NUMBER if isinstance(right, exp.Literal | exp.Neg) else kind_of(right)
    if _comparable(left_kind, right_kind, dialect):
        return ""
    return f"{_describe(left)} is {left_kind.value} and cannot be compared with {right_kind.value}"


def fits(text: str, kind: SqlKind) -> bool:
    """Return True if a text in quotes can represent a value of this kind."""
    if kind is SqlKind.NUMBER:
        return _NUMBER.fullmatch(text[:100]) is not None
    if kind is SqlKind.MOMENT:
        return _MOMENT.fullmatch(text[:100]) is not None
    return kind is not SqlKind.TRUTH or text.strip().lower() in _TRUTH


def _comparable(left_kind: SqlKind, right_kind: SqlKind, dialect: str) -> bool:
    if SqlKind.OTHER in (left_kind, right_kind) or left_kind is right_kind:
        return True
    pair = {left_kind, right_kind}
    if pair == {SqlKind.NUMBER, SqlKind.TRUTH}:
        return True
    return SqlKind.MOMENT not in pair and dialect in _LENIENT_DIALECTS


def _describe(node: exp.Expr) -> str:
    return f"column `{node.name}`" if isinstance(node, exp.Column) else "one side"


def _arithmetic_problem(node: exp.Expr, kind_of: KindOf, dialect: str) -> str:
    sides = [node.this.unnest(), node.expression.unnest()]
    kinds = [_arithmetic_kind(side, kind_of) for side in sides]
    if SqlKind.TEXT in kinds and SqlKind.NUMBER in kinds and dialect not in _LENIENT_DIALECTS:
        text = sides[kinds.index(SqlKind.TEXT)]
        return f"{_describe(text)} is a text and cannot be combined with a number"
    if kinds == [SqlKind.MOMENT, SqlKind.MOMENT] and not isinstance(node, exp.Sub):
        return "two dates cannot be combined, only subtracted"
    return ""


def _arithmetic_kind(side: exp.Expr, kind_of: KindOf) -> SqlKind:
    if isinstance(side, exp.Literal) and side.is_string:
        return SqlKind.OTHER if fits(side.name, SqlKind.NUMBER) or fits(side.name, SqlKind.MOMENT) else SqlKind.TEXT
    return SqlKind.NUMBER if isinstance(side, exp.Literal) else kind_of(side)
