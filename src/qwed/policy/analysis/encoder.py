"""Encoder of terms as formulas of the solver, with the three results of an evaluation: true, false, failed."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, NamedTuple

from qwed.policy.analysis.regular_expression import read_pattern, texts_before
from qwed.policy.analysis.symbols import ABSENT as ABSENT_ARGUMENT
from qwed.policy.analysis.symbols import (
    LARGEST_INT,
    Formula,
    SymbolicCall,
    SymbolicList,
    any_of,
    is_group,
    solver_library,
    string,
    values_of,
)
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
    is_function,
    kind_in,
    kind_of,
)
from qwed.policy.analysis.text_uses import is_literal_comparison
from qwed.policy.facts_schema import MESSAGES, PREFIX, VARIABLES

_RANGES = {
    Kind.INT: (-LARGEST_INT, LARGEST_INT - 1),
    # Closer than the range of the runtime; outside of it nothing is assumed.
    Kind.TIME: (-(2**62), 2**63),
    Kind.DURATION: (-(2**62), 2**62),
}
_ROUNDING = Fraction(1, 2**50)
"""Error of one operation on numbers, relative to its operands; more than that of the runtime."""
_SECOND = 10**9
_DAY = 86_400 * _SECOND
_CLOCK: dict[str, tuple[int, int, int]] = {
    # Function of a time in UTC: unit, how many there are, and what is added first.
    "getHours": (3600 * _SECOND, 24, 0),
    "getMinutes": (60 * _SECOND, 60, 0),
    "getSeconds": (_SECOND, 60, 0),
    "getDayOfWeek": (_DAY, 7, 4),
}
_CALENDAR = {
    "getHours": (0, 23),
    "getMinutes": (0, 59),
    "getSeconds": (0, 59),
    "getMilliseconds": (0, 999),
    "getDayOfWeek": (0, 6),
    "getDayOfMonth": (0, 30),
    "getDate": (1, 31),
    "getMonth": (0, 11),
    "getDayOfYear": (0, 365),
}


class Encoded(NamedTuple):
    """A value, and when there is none because the evaluation fails; None if it never fails."""

    value: Any
    fails: Formula | None = None


@dataclass(slots=True)
class Encoder:
    """Encodes the terms of one condition."""

    call: SymbolicCall
    incomplete_fails: bool = False
    """True to read an incomplete group as one that is not there."""
    opaque: set[Opaque] = field(default_factory=set)
    """Opaque values that were met."""
    _slots: dict[str, str] = field(default_factory=dict)
    """Element that each variable of a loop stands for."""

    def condition(self, term: Term) -> Encoded:
        """Return when a condition is true, and when its evaluation fails; never both."""
        if self._slots:
            return self._condition(term)
        key = (term, self.incomplete_fails)
        if key not in self.call.encoded:
            before = self.opaque
            self.opaque = set()
            self.call.encoded[key] = (self._condition(term), frozenset(self.opaque))
            self.opaque = before
        encoded: Encoded
        encoded, opaque = self.call.encoded[key]
        self.opaque |= opaque
        return encoded

    def _condition(self, term: Term) -> Encoded:
        value, fails = self.encode(term)
        return Encoded(value if fails is None else solver_library().And(value, solver_library().Not(fails)), fails)

    def encode(self, term: Term) -> Encoded:
        """Return the value of a term."""
        return _ENCODERS[type(term)](self, term)

    def _literal(self, term: Literal) -> Encoded:
        z3 = solver_library()
        if term.kind is Kind.BOOL:
            return Encoded(z3.BoolVal(term.value))
        if term.kind is Kind.STRING:
            return Encoded(string(term.value))
        if term.kind is Kind.NUMBER:
            return Encoded(z3.RealVal(Fraction(repr(term.value))))
        return Encoded(z3.IntVal(int(term.value)))

    def _name(self, fact: Fact) -> str:
        root = self._slots.get(fact.root, fact.root)
        return ".".join((root, *fact.path))

    def _fact(self, fact: Fact) -> Encoded:
        name, kind = self._name(fact), kind_of(fact.type)
        absent = self._absence(fact)
        if name in ("agent.trust", "trust"):
            return Encoded(self.call.level("agent.trust"), absent)
        if name == "now":
            return Encoded(self.call.now(), absent)
        if kind in (Kind.INT, Kind.NUMBER):
            return Encoded(self.call.number(name, kind), absent)
        if kind is Kind.STRING:
            self.call.restrict_text(self._agent_name(name), self._values(fact))
            return Encoded(self.call.text(self._agent_name(name)), absent)
        return Encoded(self.call.constant(self._agent_name(name), kind), absent)

    @staticmethod
    def _agent_name(name: str) -> str:
        """Return the name of a field of the agent, which `applies_to.agents` reads without `agent.`."""
        root = name.partition(".")[0]
        return f"agent.{name}" if root in _AGENT_FIELDS else name

    def _values(self, fact: Fact) -> tuple[str, ...]:
        if fact.root in _AGENT_FIELDS:
            return values_of("Agent", fact.root)
        if len(fact.path) != 1:
            return ()
        owner = VARIABLES.get(fact.root) or self._element_type(fact.root)
        return values_of(owner, fact.path[0])

    def _element_type(self, root: str) -> str:
        return self._types.get(root, "")

    @property
    def _types(self) -> Mapping[str, str]:
        return {name: "Effect" for name, slot in self._slots.items() if slot.startswith(("effects[", "code.effects["))}

    def _absence(self, fact: Fact) -> Formula | None:
        """Return when a fact is not there, or None if it always is."""
        z3 = solver_library()
        if fact.root == "args":
            parts = [".".join(("args", *fact.path[: number + 1])) for number in range(len(fact.path))]
            return z3.Or(*(self.call.argument_kind(part) == ABSENT_ARGUMENT for part in parts))
        reasons = []
        if is_group(fact.root) and self.incomplete_fails:
            present, complete = self.call.group_state(fact.root)
            reasons.append(z3.And(present, z3.Not(complete)))
        if _is_optional(fact):
            reasons.append(z3.Not(self.call.boolean(f"{self._name(fact)}#present")))
        return _any(reasons)

    def _present(self, term: Present) -> Encoded:
        fact = term.fact
        z3 = solver_library()
        if fact.root == "args":
            kind = self.call.argument_kind(self._name(fact))
            owner = self._absence(Fact("args", fact.path[:-1], "")) if len(fact.path) > 1 else None
            return Encoded(kind != ABSENT_ARGUMENT, owner)
        owner = self._absence(Fact(fact.root, fact.path[:-1], ""))
        here = self.call.boolean(f"{self._name(fact)}#present") if _is_optional(fact) else z3.BoolVal(True)
        return Encoded(here, owner)

    def _risk_in(self, term: RiskIn) -> Encoded:
        return Encoded(any_of([self.call.risk == level for level in sorted(term.levels)]))

    def _usage(self, term: Usage) -> Encoded:
        name = usage_name(term)
        if term.measure == "count":
            count = self.call.constant(name, Kind.INT)
            self.call.known.append(count >= 0)
            return Encoded(count)
        total = self.call.number(name, Kind.NUMBER)
        unusable = self.call.boolean(f"{name}#unusable")
        self.call.preferred.append(solver_library().Not(unusable))
        self.call.known.append(solver_library().And(total >= -(2**53), total <= 2**53))
        return Encoded(total, unusable)

    def _exists(self, term: Exists) -> Encoded:
        z3 = solver_library()
        source = self._list(term.source)
        holds, failing = [], []
        for slot in source.slots:
            self._slots[term.variable] = slot.name
            value, fails = self.condition(term.body)
            holds.append(z3.And(slot.is_used, value))
            if fails is not None:
                failing.append(z3.And(slot.is_used, fails))
        del self._slots[term.variable]
        found = z3.Or(*holds)
        fails = z3.And(z3.Not(found), z3.Or(*failing)) if failing else None
        return Encoded(found, _any([fails, self._absence(term.source)]))

    def _list(self, fact: Fact) -> SymbolicList:
        return self.call.list(self._name(fact), fact.type[5:-1])

    def _items(self, term: Items) -> Encoded:
        raise TypeError(f"a list has no value: {term}")

    def _opaque(self, term: Opaque) -> Encoded:
        suffix = " incomplete" if self.incomplete_fails else ""
        if not is_function(term):
            self.opaque.add(term)
            slots = ",".join(f"{name}={slot}" for name, slot in sorted(self._slots.items()))
            name = f"{term!r} {slots}{suffix}"
            return Encoded(self.call.constant(name, term.kind), self.call.boolean(f"{name}#fails"))
        operands = [self.encode(operand) for operand in term.operands]
        failing = _any([operand.fails for operand in operands])
        values = tuple(operand.value for operand in operands)
        if (exact := _clock_value(term, values)) is not None:
            self._note_calendar(term, exact)
            return Encoded(exact, failing)
        self.opaque.add(term)
        value = self._function(term.name, values, term.kind)
        self._note_calendar(term, value)
        if term.can_fail:
            failing = self.call.function(f"{term.name} fails{suffix}", values, Kind.BOOL)
        return Encoded(value, failing)

    def _note_calendar(self, term: Opaque, value: Any) -> None:
        is_now = isinstance(term.operands[0], Fact) and term.operands[0].root == "now" if term.operands else False
        zone = term.operands[-1]
        if term.name in _CALENDAR and is_now and (len(term.operands) == 1 or isinstance(zone, Literal)):
            self.call.calendar.append((term.name, zone.value if isinstance(zone, Literal) else "", value))

    def _function(self, name: str, values: tuple[Any, ...], kind: Kind) -> Any:
        z3 = solver_library()
        if not values:
            return self.call.constant(name, kind)
        value = self.call.function(name, values, kind)
        if name in _CALENDAR:
            least, most = _CALENDAR[name]
            self.call.known.append(z3.And(value >= least, value <= most))
        return value

    def _operation(self, term: Operation) -> Encoded:
        if term.name in _LAZY:
            return _LAZY[term.name](self, term)
        if term.name == "matches":
            return self._matches(term)
        if term.name in ("less", "at_most") and kind_in(term.operands[0]) is Kind.STRING:
            return self._order_of_texts(term)
        if is_literal_comparison(term):
            return self._compare_with_literal(term)
        operands = [self.encode(operand) for operand in term.operands]
        fails = _any([operand.fails for operand in operands])
        values = [operand.value for operand in operands]
        if term.name in _COMPARISONS:
            return Encoded(_COMPARISONS[term.name](*_same_sort(values)), fails)
        if term.kind is Kind.NUMBER:
            return Encoded(self._number_operation(term.name, values), fails)
        value = _OPERATIONS[term.name](*values)
        return Encoded(value, _any([fails, self._out_of_range(value, term)]))

    def _matches(self, term: Operation) -> Encoded:
        text, pattern = term.operands
        assert isinstance(pattern, Literal)  # noqa: S101 - `lower` makes no other operand
        value, fails = self.encode(text)
        return Encoded(solver_library().InRe(value, read_pattern(pattern.value)), fails)

    def _order_of_texts(self, term: Operation) -> Encoded:
        z3 = solver_library()
        left, right = term.operands
        first, second = self.encode(left), self.encode(right)
        fails = _any([first.fails, second.fails])
        included = term.name == "at_most"
        if isinstance(right, Literal):
            return Encoded(z3.InRe(first.value, texts_before(right.value, included=included)), fails)
        if isinstance(left, Literal):
            return Encoded(z3.Not(z3.InRe(second.value, texts_before(left.value, included=not included))), fails)
        return Encoded(_COMPARISONS[term.name](first.value, second.value), fails)

    def _compare_with_literal(self, term: Operation) -> Encoded:
        fact, literal = term.operands
        if isinstance(fact, Literal):
            fact, literal = literal, fact
        assert isinstance(fact, Fact) and isinstance(literal, Literal)  # noqa: S101, PT018 - `is_literal_comparison`
        name = self._agent_name(self._name(fact))
        self.call.restrict_text(name, self._values(fact))
        return Encoded(self.call.is_text(name, literal.value), self._absence(fact))

    def _out_of_range(self, value: Any, term: Operation) -> Formula | None:
        if term.kind not in _RANGES or term.name in ("length", "divide", "remainder"):
            return None
        z3, (least, most) = solver_library(), _RANGES[term.kind]
        outside = z3.Or(value < least, value > most)
        if term.kind is Kind.INT:
            return outside
        return z3.And(outside, self.call.function("out of range", (value,), Kind.BOOL))

    def _number_operation(self, name: str, values: Sequence[Any]) -> Any:
        """Return the result of an operation that the runtime rounds: a number close to the exact one."""
        z3 = solver_library()
        if name == "negative":
            return -values[0]
        if name in ("if", "item"):
            raise TypeError(f"`{name}` is not an operation on numbers")
        exact = _OPERATIONS[name](*values)
        rounded = self.call.function(name, tuple(values), Kind.NUMBER)
        sizes = [z3.If(value >= 0, value, -value) for value in (values if name != "multiply" else [exact])]
        error = z3.Sum(*sizes) * z3.RealVal(_ROUNDING)
        self.call.known.append(z3.And(rounded >= exact - error, rounded <= exact + error))
        self.call.preferred.append(rounded == exact)
        return rounded

    def _and(self, term: Operation) -> Encoded:
        return self._junction([self.condition(operand) for operand in term.operands], is_and=True)

    def _or(self, term: Operation) -> Encoded:
        return self._junction([self.condition(operand) for operand in term.operands], is_and=False)

    @staticmethod
    def _junction(parts: Sequence[Encoded], *, is_and: bool) -> Encoded:
        """Return `&&` or `||`: an operand that decides it hides that another one fails."""
        z3 = solver_library()
        join = z3.And if is_and else z3.Or
        value = join(*(part.value for part in parts)) if parts else z3.BoolVal(is_and)
        failing = _any([part.fails for part in parts])
        if failing is None:
            return Encoded(value)
        if is_and:
            # Where an operand fails, its value reads false; so only one that is false without failing decides.
            decided = [
                z3.Not(z3.Or(part.value, part.fails) if part.fails is not None else part.value) for part in parts
            ]
        else:
            decided = [part.value for part in parts]
        return Encoded(value, z3.And(failing, z3.Not(z3.Or(*decided))))

    def _not(self, term: Operation) -> Encoded:
        value, fails = self.condition(term.operands[0])
        return Encoded(solver_library().Not(value), fails)

    def _if(self, term: Operation) -> Encoded:
        z3 = solver_library()
        asked = self.condition(term.operands[0])
        yes, no = (self.encode(operand) for operand in term.operands[1:])
        fails = _any(
            [
                asked.fails,
                None if yes.fails is None else z3.And(asked.value, yes.fails),
                None if no.fails is None else z3.And(z3.Not(asked.value), no.fails),
            ]
        )
        return Encoded(z3.If(asked.value, *_same_sort([yes.value, no.value])), fails)

    def _size(self, term: Operation) -> Encoded:
        (source,) = term.operands
        assert isinstance(source, Fact)  # noqa: S101 - `lower` makes no other operand
        return Encoded(self._list(source).size, self._absence(source))

    def _item(self, term: Operation) -> Encoded:
        source, index = term.operands
        assert isinstance(source, Fact) and isinstance(index, Literal)  # noqa: S101, PT018 - `lower` makes no others
        walked = self._list(source)
        value = self._element(walked.slots[index.value].name, source)
        return Encoded(value, _any([walked.size <= index.value, self._absence(source)]))

    def _element(self, slot: str, source: Fact) -> Any:
        self._slots["$item"] = slot
        value = self.encode(Fact("$item", (), source.type[5:-1])).value
        del self._slots["$item"]
        return value

    def _equal_lists(self, term: Operation) -> Encoded:
        source, *items = term.operands
        assert isinstance(source, Fact)  # noqa: S101 - `lower` makes no other operand
        walked, z3 = self._list(source), solver_library()
        encoded = [self.encode(item) for item in items]
        equal = [walked.size == len(items)]
        for slot, item in zip(walked.slots, encoded, strict=False):
            left, right = _same_sort([self._element(slot.name, source), item.value])
            equal.append(left == right)
        return Encoded(z3.And(*equal), _any([self._absence(source), *(item.fails for item in encoded)]))


_AGENT_FIELDS = frozenset(known.name for known in MESSAGES["Agent"])
_ENCODERS: dict[type[Any], Callable[[Encoder, Any], Encoded]] = {
    Literal: Encoder._literal,
    Fact: Encoder._fact,
    Present: Encoder._present,
    RiskIn: Encoder._risk_in,
    Usage: Encoder._usage,
    Operation: Encoder._operation,
    Exists: Encoder._exists,
    Opaque: Encoder._opaque,
    Items: Encoder._items,
}
_LAZY: dict[str, Callable[[Encoder, Operation], Encoded]] = {
    "and": Encoder._and,
    "or": Encoder._or,
    "not": Encoder._not,
    "if": Encoder._if,
    "size": Encoder._size,
    "item": Encoder._item,
    "equal_lists": Encoder._equal_lists,
}
_COMPARISONS: dict[str, Callable[[Any, Any], Any]] = {
    "equal": lambda left, right: left == right,
    "less": lambda left, right: left < right,
    "at_most": lambda left, right: left <= right,
    "startsWith": lambda text, part: solver_library().PrefixOf(part, text),
    "endsWith": lambda text, part: solver_library().SuffixOf(part, text),
    "contains": lambda text, part: solver_library().Contains(text, part),
}
_OPERATIONS: dict[str, Callable[..., Any]] = {
    "add": lambda left, right: left + right,
    "subtract": lambda left, right: left - right,
    "negative": lambda value: -value,
    "multiply": lambda left, right: left * right,
    "divide": lambda left, right: _truncated(left, right),
    "remainder": lambda left, right: left - _truncated(left, right) * right,
    "concat": lambda left, right: solver_library().Concat(left, right),
    "length": lambda text: solver_library().Length(text),
}


def _truncated(value: Any, divisor: Any) -> Any:
    """Return the quotient rounded towards zero; the solver rounds down."""
    return solver_library().If(value >= 0, value / divisor, -(-value / divisor))


def _clock_value(term: Opaque, values: Sequence[Any]) -> Any:
    """Return a part of a time in UTC, or None if it needs a calendar or a time zone."""
    if term.name not in _CLOCK or len(values) != 1 or kind_in(term.operands[0]) is not Kind.TIME:
        return None
    unit, most, first = _CLOCK[term.name]
    return (values[0] / unit + first) % most


def _same_sort(values: Sequence[Any]) -> Sequence[Any]:
    """Return integers as numbers where they are used with numbers that need not be whole."""
    z3 = solver_library()
    if any(z3.is_real(value) for value in values):
        return [z3.ToReal(value) if z3.is_int(value) else value for value in values]
    return values


def _is_optional(fact: Fact) -> bool:
    if not is_group(fact.root) or len(fact.path) != 1:
        return False
    fields = MESSAGES[VARIABLES[fact.root].removeprefix(PREFIX)]
    return any(known.optional for known in fields if known.name == fact.path[0])


def _any(formulas: Sequence[Formula | None]) -> Formula | None:
    given = [formula for formula in formulas if formula is not None]
    return any_of(given) if given else None


def usage_name(term: Usage) -> str:
    """Return the name of the variable of a counter."""
    return f"usage {term.scope} {term.measure} {term.tool} {term.argument} {term.seconds}"
