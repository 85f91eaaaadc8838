"""Encoding of typed terms in z3, with exact treatment of division.

A formula is compiled twice: to the condition under which it certainly holds, and that under which it certainly fails.
If a denominator is zero the comparison around it does neither, and AND, OR, IMPLIES and the quantifiers propagate that
as in Kleene's logic: `(IMPLIES (NE y 0) (GT (DIV 1 y) 0))` holds at y = 0, `(EQ (DIV 1 y) 1)` is undecided there.
DIV is exact division also of Ints; MOD is the remainder that is never negative; POW takes a literal exponent.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, cast

import z3

from qwed.engines._logic.sexpr import LogicRefusalError
from qwed.engines._logic.trampoline import Step, run, run_all
from qwed.engines._logic.types import SORT_OF, Relation, Sort, Symbol, Term, TermKind

MAX_EXPONENT = 64
MAX_WEIGHT = 4_300
"""Limit on digits and degree together; beyond it one multiplication could exhaust the memory."""
NAME_WEIGHT = 400
"""Weight of a name, which allows its tenth power: for higher degrees z3 does not keep its time limit."""


@dataclass(frozen=True, slots=True)
class Truth:
    """Conditions under which a formula certainly holds and certainly fails."""

    holds: Any
    fails: Any
    total: bool = True
    """True if it always does one or the other."""


@dataclass(frozen=True, slots=True)
class Value:
    """Number or string, and the condition under which it is defined (None: always)."""

    value: Any
    defined: Any = None
    weight: int = 1


@dataclass(slots=True)
class Z3Encoder:
    """Encoder of terms in one z3 context; raises LogicRefusalError for a term beyond its limits."""

    context: Any
    constants: dict[Symbol, Any] = field(default_factory=dict)

    def truth(self, term: Term) -> Truth:
        """Return the two formulas of a Bool term."""
        return run(self._truth(term))

    def _truth(self, term: Term) -> Step[Truth]:
        if term.operator in ("NAME", "TRUTH"):
            return self._two_valued(
                self._constant(term) if term.operator == "NAME" else self._literal(term.text == "true")
            )
        if term.operator in ("EQ", "NE") and term.arguments[0].kind is TermKind.TRUTH:
            return cast(Truth, (yield self._connective("IFF" if term.operator == "EQ" else "XOR", term)))
        if term.operator in _COMPARISONS:
            return cast(Truth, (yield self._comparison(term)))
        if term.operator in _QUANTIFIERS:
            return cast(Truth, (yield self._quantified(term)))
        return cast(Truth, (yield self._connective(term.operator, term)))

    def _value(self, term: Term) -> Step[Value]:
        """Return the value of a term that is not a truth value."""
        if term.operator == "NAME":
            return Value(self._constant(term), None, NAME_WEIGHT)
        if term.operator in _LITERALS:
            return _LITERALS[term.operator](self, term)
        if term.operator == "IF":
            return cast(Value, (yield self._conditional(term)))
        parts: list[Value] = yield self._values(term)
        result = _ARITHMETIC[term.operator](self, term, parts)
        if result.weight > MAX_WEIGHT:
            raise LogicRefusalError(
                "TYPE_ERROR", "the numbers here grow too large, use smaller factors or exponents", term.at
            )
        return result

    def _values(self, term: Term) -> Step[list[Value]]:
        return run_all(self._value(argument) for argument in term.arguments)

    def _constant(self, term: Term) -> Any:
        symbol = term.symbol
        if symbol not in self.constants:
            self.constants[symbol] = self.constant(symbol)  # type: ignore[arg-type, index]  # a NAME has a symbol
        return self.constants[symbol]  # type: ignore[index]  # a NAME has a symbol

    def constant(self, symbol: Symbol) -> Any:
        """Return the z3 constant of a variable."""
        return z3.Const(symbol.name, self.sort(symbol.sort))

    def sort(self, sort: Sort) -> Any:
        """Return the z3 sort; things are uninterpreted."""
        return _SORTS[sort](self.context)

    def relation(self, relation: Relation) -> Any:
        """Return the z3 declaration of a predicate or function."""
        argument_sorts = [self.sort(SORT_OF[slot.kind]) for slot in relation.arguments]
        return z3.Function(relation.name, *argument_sorts, self.sort(SORT_OF[relation.result.kind]))

    def _literal(self, truth: bool) -> Any:
        return z3.BoolVal(truth, self.context)

    def _two_valued(self, formula: Any) -> Truth:
        return Truth(formula, z3.Not(formula))

    def _connective(self, operator: str, term: Term) -> Step[Truth]:
        parts: list[Truth] = yield run_all(self._truth(argument) for argument in term.arguments)
        holds, fails = _CONNECTIVES[operator](parts)
        if all(part.total for part in parts):
            return self._two_valued(holds)
        return Truth(holds, fails, total=False)

    def _comparison(self, term: Term) -> Step[Truth]:
        """Encode a comparison or a predicate: undecided where one of its values is undefined."""
        parts: list[Value] = yield self._values(term)
        if term.operator == "APPLY":
            formula = self._applied(term, parts).value
        else:
            formula = _COMPARISONS[term.operator](*(part.value for part in parts))
        defined = self._defined(parts)
        if defined is None:
            return self._two_valued(formula)
        return Truth(z3.And(defined, formula), z3.And(defined, z3.Not(formula)), total=False)

    def _applied(self, term: Term, parts: list[Value]) -> Value:
        declared = self.relation(term.relation)  # type: ignore[arg-type]  # an APPLY has a relation
        arguments = [
            _real(part.value) if declared.domain(index).kind() == z3.Z3_REAL_SORT else part.value
            for index, part in enumerate(parts)
        ]
        return Value(declared(*arguments), self._defined(parts), NAME_WEIGHT)

    def _quantified(self, term: Term) -> Step[Truth]:
        body: Truth = yield self._truth(term.arguments[0])
        bound = [self.constants.get(symbol, self.constant(symbol)) for symbol in term.names]
        every, some = (z3.ForAll, z3.Exists) if term.operator == "FORALL" else (z3.Exists, z3.ForAll)
        if body.total:
            return self._two_valued(every(bound, body.holds))
        return Truth(every(bound, body.holds), some(bound, body.fails), total=False)

    def _conditional(self, term: Term) -> Step[Value]:
        condition: Truth = yield self._truth(term.arguments[0])
        one: Value = yield self._value(term.arguments[1])
        other: Value = yield self._value(term.arguments[2])
        value = z3.If(condition.holds, *_same_sort(one.value, other.value))
        weight = max(one.weight, other.weight)
        if condition.total and one.defined is None and other.defined is None:
            return Value(value, None, weight)
        branches = z3.And(condition.holds, self._condition(one)), z3.And(condition.fails, self._condition(other))
        return Value(value, z3.Or(*branches), weight)

    def _condition(self, value: Value) -> Any:
        return self._literal(True) if value.defined is None else value.defined

    def _conjoin(self, *conditions: Any) -> Any:
        present = [condition for condition in conditions if condition is not None]
        return z3.And(*present) if len(present) > 1 else next(iter(present), None)

    def _number(self, term: Term) -> Value:
        make = z3.RealVal if "." in term.text else z3.IntVal
        return Value(make(term.text, self.context), None, len(term.text))

    def _string(self, term: Term) -> Value:
        return Value(z3.StringVal(term.text, self.context), None, 1)

    def _sum(self, _term: Term, parts: list[Value]) -> Value:
        total = z3.Sum([part.value for part in parts])
        return Value(total, self._defined(parts), max(part.weight for part in parts) + 1)

    def _product(self, _term: Term, parts: list[Value]) -> Value:
        return Value(
            z3.Product([part.value for part in parts]), self._defined(parts), sum(part.weight for part in parts)
        )

    def _difference(self, _term: Term, parts: list[Value]) -> Value:
        return Value(parts[0].value - parts[1].value, self._defined(parts), max(part.weight for part in parts) + 1)

    def _negated(self, _term: Term, parts: list[Value]) -> Value:
        return Value(-parts[0].value, parts[0].defined, parts[0].weight)

    def _absolute(self, _term: Term, parts: list[Value]) -> Value:
        value = parts[0].value
        return Value(z3.If(value >= 0, value, -value), parts[0].defined, parts[0].weight)

    def _quotient(self, _term: Term, parts: list[Value]) -> Value:
        above, below = (_real(part.value) for part in parts)
        return Value(above / below, self._conjoin(self._defined(parts), below != 0), sum(part.weight for part in parts))

    def _remainder(self, term: Term, parts: list[Value]) -> Value:
        if not all(z3.is_int(part.value) for part in parts):
            raise LogicRefusalError(
                "TYPE_ERROR", "MOD takes whole numbers, declare its names as in (VAR x Int)", term.at
            )
        above, below = (part.value for part in parts)
        return Value(above % below, self._conjoin(self._defined(parts), below != 0), max(part.weight for part in parts))

    def _power(self, term: Term, parts: list[Value]) -> Value:
        base, exponent = parts[0], _exponent(term.arguments[1])
        weight = base.weight * max(1, abs(exponent))
        if exponent > 0 and weight <= MAX_WEIGHT:
            return Value(z3.Product([base.value] * exponent), base.defined, weight)
        if exponent > 0:
            return Value(base.value, base.defined, weight)
        raise LogicRefusalError(
            "TYPE_ERROR", "POW takes an exponent of at least 1, write (DIV 1 ...) for a negative one", term.at
        )

    def _defined(self, parts: list[Value]) -> Any:
        return self._conjoin(*(part.defined for part in parts))


def _exponent(term: Term) -> int:
    if term.operator != "NUMBER" or "." in term.text or len(term.text) > 3 or int(term.text) > MAX_EXPONENT:
        message = f"the exponent of POW must be a whole number from 1 to {MAX_EXPONENT}, written out"
        raise LogicRefusalError("TYPE_ERROR", message, term.at)
    return int(term.text)


def _real(value: Any) -> Any:
    return z3.ToReal(value) if z3.is_int(value) else value


def _same_sort(one: Any, other: Any) -> tuple[Any, Any]:
    return (one, other) if one.sort() == other.sort() else (_real(one), _real(other))


def _conjunction(parts: list[Truth]) -> tuple[Any, Any]:
    return z3.And(*(part.holds for part in parts)), z3.Or(*(part.fails for part in parts))


def _disjunction(parts: list[Truth]) -> tuple[Any, Any]:
    return z3.Or(*(part.holds for part in parts)), z3.And(*(part.fails for part in parts))


def _negation(parts: list[Truth]) -> tuple[Any, Any]:
    return parts[0].fails, parts[0].holds


def _implication(parts: list[Truth]) -> tuple[Any, Any]:
    one, other = parts
    return z3.Or(one.fails, other.holds), z3.And(one.holds, other.fails)


def _equivalence(parts: list[Truth]) -> tuple[Any, Any]:
    one, other = parts
    alike = z3.Or(z3.And(one.holds, other.holds), z3.And(one.fails, other.fails))
    return alike, z3.Or(z3.And(one.holds, other.fails), z3.And(one.fails, other.holds))


def _difference_of_truth(parts: list[Truth]) -> tuple[Any, Any]:
    alike, unlike = _equivalence(parts)
    return unlike, alike


def _choice(parts: list[Truth]) -> tuple[Any, Any]:
    condition, one, other = parts
    holds = z3.Or(z3.And(condition.holds, one.holds), z3.And(condition.fails, other.holds))
    return holds, z3.Or(z3.And(condition.holds, one.fails), z3.And(condition.fails, other.fails))


_SORTS: dict[Sort, Callable[[Any], Any]] = {
    Sort.BOOL: z3.BoolSort,
    Sort.INT: z3.IntSort,
    Sort.REAL: z3.RealSort,
    Sort.STRING: z3.StringSort,
    Sort.THING: lambda context: z3.DeclareSort("Thing", context),
}
_QUANTIFIERS = ("FORALL", "EXISTS")
_CONNECTIVES: dict[str, Callable[[list[Truth]], tuple[Any, Any]]] = {
    "AND": _conjunction,
    "OR": _disjunction,
    "NOT": _negation,
    "IMPLIES": _implication,
    "IFF": _equivalence,
    "XOR": _difference_of_truth,
    "IF": _choice,
}
_COMPARISONS: dict[str, Callable[..., Any]] = {
    "EQ": lambda one, other: one == other,
    "NE": lambda one, other: one != other,
    "GT": lambda one, other: one > other,
    "LT": lambda one, other: one < other,
    "GE": lambda one, other: one >= other,
    "LE": lambda one, other: one <= other,
    "WHOLE": lambda value: z3.IsInt(_real(value)),
    "APPLY": lambda *_: None,
}
_LITERALS: dict[str, Callable[[Z3Encoder, Term], Value]] = {"NUMBER": Z3Encoder._number, "STRING": Z3Encoder._string}
_ARITHMETIC: dict[str, Callable[[Z3Encoder, Term, list[Value]], Value]] = {
    "PLUS": Z3Encoder._sum,
    "TIMES": Z3Encoder._product,
    "MINUS": Z3Encoder._difference,
    "NEG": Z3Encoder._negated,
    "ABS": Z3Encoder._absolute,
    "DIV": Z3Encoder._quotient,
    "MOD": Z3Encoder._remainder,
    "POW": Z3Encoder._power,
    "APPLY": Z3Encoder._applied,
}
