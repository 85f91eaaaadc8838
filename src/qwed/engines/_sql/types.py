"""Whether the sides of a comparison can be compared at all, as far as a schema tells their types."""

import re
from collections.abc import Callable, Iterator
from enum import Enum
from typing import Any

from sqlglot import exp
from sqlglot.errors import SqlglotError


class Kind(Enum):
    """What a value is, as coarsely as databases agree about comparing it."""

    NUMBER = "a number"
    TEXT = "a text"
    MOMENT = "a date or time"
    TRUTH = "true or false"
    OTHER = "of another type"


KindOf = Callable[[exp.Expr], Kind]

_LOOSE = frozenset({"sqlite", "mysql"})
"""Dialects that compare a number with a text column by turning one into the other."""
_T = exp.DataType.Type
_SERIALS = {_T.SERIAL, _T.BIGSERIAL, _T.SMALLSERIAL}
_KINDS: dict[Any, Kind] = {
    **dict.fromkeys(exp.DataType.NUMERIC_TYPES, Kind.NUMBER),
    **dict.fromkeys(_SERIALS, Kind.NUMBER),
    **dict.fromkeys(exp.DataType.TEXT_TYPES, Kind.TEXT),
    **dict.fromkeys(exp.DataType.TEMPORAL_TYPES, Kind.MOMENT),
    _T.BOOLEAN: Kind.TRUTH,
    _T.BIT: Kind.OTHER,
}
_COMPARED = (exp.EQ, exp.NEQ, exp.GT, exp.GTE, exp.LT, exp.LTE, exp.NullSafeEQ)
_COUNTED = (exp.Mul, exp.Div, exp.Mod, exp.Add, exp.Sub)
_NUMBER = re.compile(r"\s*[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?\s*")
_MOMENT = re.compile(r"(?i)\s*(?:.*\d.*|now|today|tomorrow|yesterday|-?infinity|epoch|allballs|)\s*", re.DOTALL)
_TRUTH = frozenset({"true", "false", "t", "f", "yes", "no", "y", "n", "on", "off", "1", "0", ""})


def kind_of_type(datatype: object) -> Kind:
    """The kind of a column or a cast."""
    if isinstance(datatype, str):
        try:
            datatype = exp.DataType.build(datatype)
        except (SqlglotError, ValueError):
            return Kind.OTHER
    return _KINDS.get(datatype.this, Kind.OTHER) if isinstance(datatype, exp.DataType) else Kind.OTHER


def kind_of_node(node: exp.Expr) -> Kind:
    """The kind an annotated node has."""
    if isinstance(node, exp.Any | exp.All | exp.Tuple):
        return Kind.OTHER
    select = node.unnest() if isinstance(node, exp.Subquery) else node
    if isinstance(select, exp.Select) and len(select.expressions) == 1:
        return kind_of_type(select.expressions[0].type)
    return kind_of_type(node.type)


def type_problem(statement: exp.Expr, kind_of: KindOf, dialect: str) -> str:
    """The first two values that cannot be compared or counted together, in words."""
    for node in statement.walk():
        if isinstance(node, _COUNTED):
            problem = _counting_problem(node, kind_of, dialect)
        else:
            problem = next((found for pair in _pairs(node) if (found := _mismatch(*pair, kind_of, dialect))), "")
        if problem:
            return problem
    return ""


def _pairs(node: exp.Expr) -> Iterator[tuple[exp.Expr, exp.Expr]]:
    if isinstance(node, _COMPARED):
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
    mine = kind_of(left)
    if isinstance(right, exp.Literal) and right.is_string:
        return "" if fits(right.name, mine) else f"{_named(left)} is {mine.value} and cannot be compared with this text"
    theirs = Kind.NUMBER if isinstance(right, exp.Literal | exp.Neg) else kind_of(right)
    if _comparable(mine, theirs, dialect):
        return ""
    return f"{_named(left)} is {mine.value} and cannot be compared with {theirs.value}"


def fits(text: str, kind: Kind) -> bool:
    """Whether a text in quotes can stand for a value of this kind."""
    if kind is Kind.NUMBER:
        return _NUMBER.fullmatch(text[:100]) is not None
    if kind is Kind.MOMENT:
        return _MOMENT.fullmatch(text[:100]) is not None
    return kind is not Kind.TRUTH or text.strip().lower() in _TRUTH


def _comparable(mine: Kind, theirs: Kind, dialect: str) -> bool:
    if Kind.OTHER in (mine, theirs) or mine is theirs:
        return True
    pair = {mine, theirs}
    if pair == {Kind.NUMBER, Kind.TRUTH}:
        return True
    return Kind.MOMENT not in pair and dialect in _LOOSE


def _named(node: exp.Expr) -> str:
    return f"column `{node.name}`" if isinstance(node, exp.Column) else "one side"


def _counting_problem(node: exp.Expr, kind_of: KindOf, dialect: str) -> str:
    sides = [node.this.unnest(), node.expression.unnest()]
    kinds = [_counted(side, kind_of) for side in sides]
    if Kind.TEXT in kinds and Kind.NUMBER in kinds and dialect not in _LOOSE:
        text = sides[kinds.index(Kind.TEXT)]
        return f"{_named(text)} is a text and cannot be counted with a number"
    if kinds == [Kind.MOMENT, Kind.MOMENT] and not isinstance(node, exp.Sub):
        return "two dates cannot be counted together"
    return ""


def _counted(side: exp.Expr, kind_of: KindOf) -> Kind:
    if isinstance(side, exp.Literal) and side.is_string:
        return Kind.OTHER if fits(side.name, Kind.NUMBER) or fits(side.name, Kind.MOMENT) else Kind.TEXT
    return Kind.NUMBER if isinstance(side, exp.Literal) else kind_of(side)
