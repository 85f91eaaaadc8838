"""Reader of checked conditions into terms: what has no term of its own becomes an opaque value."""

import math
import re
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from fractions import Fraction
from typing import Any

from qwed.model.decision import Risk
from qwed.policy.analysis.regular_expression import is_known_pattern
from qwed.policy.analysis.terms import (
    Exists,
    Fact,
    Items,
    Kind,
    Literal,
    Opaque,
    Operation,
    Present,
    RiskIn,
    Term,
    Usage,
    kind_in,
    kind_of,
    walk,
)
from qwed.policy.cel_ast import Node

Scope = Mapping[str, Term]
"""Variables of the loops around an expression."""
MAX_ARITHMETIC = 8
"""Operations on numbers in one comparison; with so few, none can overflow."""
_LARGEST_FACTOR = 10**6
_NO_FAILURE = frozenset(
    {
        "getDate",
        "getDayOfMonth",
        "getDayOfWeek",
        "getDayOfYear",
        "getFullYear",
        "getHours",
        "getMilliseconds",
        "getMinutes",
        "getMonth",
        "getSeconds",
        "matches",
    }
)
"""Functions that cannot fail where their text argument is a literal: it was tried when the policy was loaded."""


def lower(root: Node) -> Term:
    """Return the term of a checked condition."""
    return _Lowering().term(root, {})


class _Lowering:
    def term(self, node: Node, scope: Scope) -> Term:
        if node.kind == "const":
            return Literal(node.value, kind_of(node.type))
        if node.kind == "ident":
            return scope[node.name] if node.name in scope else Fact(node.name, (), node.type)
        if node.kind in ("select", "has"):
            return self._select(node, scope)
        if node.kind in ("exists", "all"):
            return self._loop(node, scope)
        if node.kind == "call":
            lowered = _CALLS.get(node.name, _Lowering._unknown_call)(self, node, scope)
            return lowered or self._opaque(node, scope)
        return self._opaque(node, scope)

    def _terms(self, nodes: Sequence[Node], scope: Scope) -> tuple[Term, ...]:
        return tuple(self.term(node, scope) for node in nodes)

    def _select(self, node: Node, scope: Scope) -> Term:
        operand = self.term(node.children[0], scope)
        if not isinstance(operand, Fact):
            return self._opaque(node, scope)
        fact = Fact(operand.root, (*operand.path, node.name), node.type)
        return Present(fact) if node.kind == "has" else fact

    def _loop(self, node: Node, scope: Scope) -> Term:
        source, body = node.children
        is_all = node.kind == "all"
        if source.kind == "list":
            items = self._terms(source.children, scope)
            parts = tuple(self.term(body, {**scope, node.name: item}) for item in items)
            return Operation("and" if is_all else "or", parts, Kind.BOOL)
        walked = self.term(source, scope)
        if not isinstance(walked, Fact) or not walked.type.startswith("list("):
            return self._opaque(node, scope)
        variable = f"${len(scope)}"
        inner = self.term(body, {**scope, node.name: Fact(variable, (), walked.type[5:-1])})
        return negated(Exists(walked, variable, negated(inner))) if is_all else Exists(walked, variable, inner)

    def _unknown_call(self, node: Node, scope: Scope) -> Term:
        return self._opaque(node, scope)

    def _opaque(self, node: Node, scope: Scope) -> Term:
        if node.kind == "list":
            return Items(self._terms(node.children, scope))
        name = node.name if node.kind == "call" else f"{node.kind} {node.name}" * (node.kind == "select") or node.kind
        inside = scope
        if node.kind in ("exists", "all", "exists_one", "filter", "map_list"):
            source, *bodies = node.children
            element = source.type[5:-1] if source.type.startswith("list(") else "dyn"
            inside = {**scope, node.name: Fact(f"${len(scope)}", (), element)}
            operands = (self.term(source, scope), *self._terms(bodies, inside))
        else:
            operands = self._terms(node.children, scope)
        literal = all(part.kind == "const" for part in node.children[1:])
        can_fail = not (node.name in _NO_FAILURE and literal)
        return Opaque(name, operands, kind_of(node.type), can_fail, node.position)

    def _logical(self, node: Node, scope: Scope) -> Term:
        return Operation("and" if node.name == "_&&_" else "or", self._terms(node.children, scope), Kind.BOOL)

    def _not(self, node: Node, scope: Scope) -> Term:
        return negated(self.term(node.children[0], scope))

    def _choice(self, node: Node, scope: Scope) -> Term | None:
        kind = kind_of(node.type)
        return None if kind is Kind.OTHER else Operation("if", self._terms(node.children, scope), kind)

    def _equal(self, node: Node, scope: Scope) -> Term | None:
        equal = self._equality(node, scope)
        return negated(equal) if equal is not None and node.name == "_!=_" else equal

    def _equality(self, node: Node, scope: Scope) -> Term | None:
        left, right = self._terms(node.children, scope)
        for side, other in ((left, right), (right, left)):
            if _is_risk(side) and isinstance(other, Literal):
                return _risk_in((other,))
            if isinstance(side, Fact) and side.type.startswith("list(") and isinstance(other, Items):
                return Operation("equal_lists", (side, *other.items), Kind.BOOL)
        return _comparison("equal", left, right, node)

    def _order(self, node: Node, scope: Scope) -> Term | None:
        left, right = self._terms(node.children, scope)
        if node.name in ("_>_", "_>=_"):
            left, right = right, left
        if node.children[0].type == "bool":
            return None
        return _comparison("less" if node.name in ("_<_", "_>_") else "at_most", left, right, node)

    def _in(self, node: Node, scope: Scope) -> Term | None:
        value, items = self._terms(node.children, scope)
        if isinstance(items, Items):
            if _is_risk(value):
                return _risk_in(items.items) if all(isinstance(item, Literal) for item in items.items) else None
            parts = tuple(_comparison("equal", value, item, node) for item in items.items)
            return Operation("or", parts, Kind.BOOL)
        if isinstance(items, Fact) and items.type.startswith("list("):
            variable = f"${len(scope)}"
            element = Fact(variable, (), items.type[5:-1])
            return Exists(items, variable, _comparison("equal", element, value, node))
        return None

    def _item(self, node: Node, scope: Scope) -> Term | None:
        operand, index = self._terms(node.children, scope)
        if not isinstance(operand, Fact) or not isinstance(index, Literal):
            return None
        if operand.path[-1:] == ("labels",) or operand.text == "labels":
            return Fact(operand.root, (*operand.path, str(index.value)), node.type)
        if isinstance(index.value, int) and 0 <= index.value < MAX_ARITHMETIC and kind_of(node.type) is not Kind.OTHER:
            return Operation("item", (operand, index), kind_of(node.type))
        return None

    def _add(self, node: Node, scope: Scope) -> Term | None:
        kind = kind_of(node.type)
        operands = self._terms(node.children, scope)
        if kind is Kind.OTHER:
            return None
        # The order of the terms of a sum does not change it, so sums that differ in it are the same term.
        if kind in (Kind.INT, Kind.NUMBER):
            operands = tuple(sorted(operands, key=repr))
        return Operation("concat" if kind is Kind.STRING else "add", operands, kind)

    def _subtract(self, node: Node, scope: Scope) -> Term | None:
        return Operation("subtract", self._terms(node.children, scope), kind_of(node.type))

    def _negative(self, node: Node, scope: Scope) -> Term | None:
        return Operation("negative", self._terms(node.children, scope), kind_of(node.type))

    def _multiply(self, node: Node, scope: Scope) -> Term | None:
        left, right = self._terms(node.children, scope)
        if isinstance(left, Literal):
            left, right = right, left
        if not isinstance(right, Literal) or abs(right.value) > _LARGEST_FACTOR:
            return None
        return Operation("multiply", (left, right), kind_of(node.type))

    def _divide(self, node: Node, scope: Scope) -> Term | None:
        left, right = self._terms(node.children, scope)
        if kind_of(node.type) is not Kind.INT or not isinstance(right, Literal) or right.value <= 0:
            return None
        return Operation("divide" if node.name == "_/_" else "remainder", (left, right), Kind.INT)

    def _text(self, node: Node, scope: Scope) -> Term | None:
        return Operation(node.name, self._terms(node.children, scope), Kind.BOOL)

    def _matches(self, node: Node, scope: Scope) -> Term | None:
        text, pattern = self._terms(node.children, scope)
        if not isinstance(pattern, Literal) or not is_known_pattern(pattern.value):
            return None
        return Operation("matches", (text, pattern), Kind.BOOL)

    def _size(self, node: Node, scope: Scope) -> Term | None:
        (operand,) = self._terms(node.children, scope)
        if node.children[0].type == "string":
            return Operation("length", (operand,), Kind.INT)
        if isinstance(operand, Fact) and operand.type.startswith("list("):
            return Operation("size", (operand,), Kind.INT)
        return None

    def _double(self, node: Node, scope: Scope) -> Term | None:
        (operand,) = self._terms(node.children, scope)
        if node.children[0].type == "double":
            return operand
        is_small = isinstance(operand, Literal) and isinstance(operand.value, int) and abs(operand.value) < 2**53
        return Literal(float(operand.value), Kind.NUMBER) if is_small and isinstance(operand, Literal) else None

    def _at_least(self, node: Node, _scope: Scope) -> Term | None:
        least = Risk.of(str(node.children[0].value))
        return RiskIn(frozenset(int(risk) for risk in Risk if risk >= least))

    def _usage(self, node: Node, scope: Scope) -> Term | None:
        *names, span = self._terms(node.children, scope)
        scope_name = "organisation" if node.name.startswith("usage.org") else "agent"
        texts = [str(name.value) for name in names if isinstance(name, Literal)]
        seconds = span.value // _NANOSECONDS if isinstance(span, Literal) else 0
        argument = texts[1] if len(texts) > 1 else ""
        return Usage(scope_name, node.name.rsplit(".", 1)[1], texts[0], argument, seconds)

    def _duration(self, node: Node, _scope: Scope) -> Term | None:
        nanoseconds = _duration(node.children[0].value)
        return None if nanoseconds is None else Literal(nanoseconds, Kind.DURATION)

    def _timestamp(self, node: Node, _scope: Scope) -> Term | None:
        nanoseconds = _timestamp(node.children[0].value)
        return None if nanoseconds is None else Literal(nanoseconds, Kind.TIME)


_CALLS: dict[str, Callable[[_Lowering, Node, Scope], Term | None]] = {
    "_&&_": _Lowering._logical,
    "_||_": _Lowering._logical,
    "!_": _Lowering._not,
    "_?_:_": _Lowering._choice,
    "_==_": _Lowering._equal,
    "_!=_": _Lowering._equal,
    "_<_": _Lowering._order,
    "_<=_": _Lowering._order,
    "_>_": _Lowering._order,
    "_>=_": _Lowering._order,
    "@in": _Lowering._in,
    "_[_]": _Lowering._item,
    "_+_": _Lowering._add,
    "_-_": _Lowering._subtract,
    "-_": _Lowering._negative,
    "_*_": _Lowering._multiply,
    "_/_": _Lowering._divide,
    "_%_": _Lowering._divide,
    "startsWith": _Lowering._text,
    "endsWith": _Lowering._text,
    "contains": _Lowering._text,
    "matches": _Lowering._matches,
    "size": _Lowering._size,
    "double": _Lowering._double,
    "risk_at_least": _Lowering._at_least,
    "usage.count": _Lowering._usage,
    "usage.sum": _Lowering._usage,
    "usage.org.count": _Lowering._usage,
    "usage.org.sum": _Lowering._usage,
    "duration": _Lowering._duration,
    "timestamp": _Lowering._timestamp,
}


def negated(term: Term) -> Term:
    """Return the negation of a condition."""
    if isinstance(term, Operation) and term.name == "not":
        return term.operands[0]
    return Operation("not", (term,), Kind.BOOL)


def _is_risk(term: Term) -> bool:
    return isinstance(term, Fact) and term.root == "risk"


def _risk_in(words: Sequence[Any]) -> Term:
    return RiskIn(frozenset(int(risk) for risk in Risk for word in words if word.value == risk.word))


def _comparison(name: str, left: Term, right: Term, node: Node) -> Term:
    """Return a comparison; an opaque one where a number could be infinite or not a number."""
    kinds = {kind_in(left), kind_in(right)}
    if Kind.OTHER in kinds or not (_is_finite(left) and _is_finite(right)):
        return Opaque(node.name, (left, right), Kind.BOOL, True, node.position)
    return Operation(name, (left, right), Kind.BOOL)


def _is_finite(term: Term) -> bool:
    """Return True if no number in a term can be infinite, so that numbers compare as they do in mathematics."""
    operations = 0
    for part in walk(term):
        if isinstance(part, Opaque) and part.kind is Kind.NUMBER:
            return False
        if isinstance(part, Literal) and isinstance(part.value, float) and not abs(part.value) <= 2.0**53:
            return False
        operations += isinstance(part, Operation) and part.kind is Kind.NUMBER
    return operations <= MAX_ARITHMETIC


_NANOSECONDS = 10**9
_UNITS = {"h": 3600 * _NANOSECONDS, "m": 60 * _NANOSECONDS, "s": _NANOSECONDS, "ms": 10**6, "us": 10**3, "ns": 1}
_DURATION = re.compile(r"-?(?:\d+(?:\.\d*)?(?:h|ms|m|s|us|ns))+\Z", re.ASCII)
_DURATION_PART = re.compile(r"(\d+(?:\.\d*)?)(h|ms|m|s|us|ns)", re.ASCII)
_FRACTION = re.compile(r"\.(\d+)")
_EPOCH = datetime.fromisoformat("1970-01-01T00:00:00+00:00")


def _duration(text: Any) -> int | None:
    """Return the nanoseconds of a duration such as `1h30m`, or None if it is written in another way."""
    if not isinstance(text, str) or not _DURATION.match(text):
        return None
    total = sum(Fraction(number.rstrip(".")) * _UNITS[unit] for number, unit in _DURATION_PART.findall(text))
    return math.floor(total) * (-1 if text.startswith("-") else 1) if total.denominator == 1 else None


def _timestamp(text: Any) -> int | None:
    """Return the nanoseconds since 1970 of a time, or None if it is written in another way."""
    if not isinstance(text, str):
        return None
    fraction = _FRACTION.search(text)
    try:
        moment = datetime.fromisoformat(_FRACTION.sub("", text, count=1))
    except ValueError:
        return None
    if moment.tzinfo is None:
        return None
    seconds = (moment - _EPOCH) // (_EPOCH.resolution * 10**6)
    return seconds * _NANOSECONDS + (int(f"{fraction[1]:0<9}"[:9]) if fraction else 0)
