"""Symbolic call: one solver variable for every value of a call that conditions read."""

import functools
import itertools
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from typing import Any, NamedTuple

from qwed.model.decision import Risk
from qwed.model.effect import RISK_OF, EffectKind
from qwed.policy.analysis.list_bounds import ListBound
from qwed.policy.analysis.terms import Kind
from qwed.policy.argument_types import ArgumentType
from qwed.policy.facts_schema import GROUPS, MESSAGES, PREFIX

Formula = Any
"""A Boolean expression of the solver."""

ABSENT, BOOLEAN, NUMBER, STRING, LIST, OBJECT = range(6)
"""What an argument is. OBJECT stands for everything that is of none of the types that a policy can state."""
_KIND_OF = {"boolean": BOOLEAN, "integer": NUMBER, "number": NUMBER, "string": STRING, "list": LIST}
LARGEST_INT = 2**63
LARGEST_NUMBER = 2**53
USUAL_NUMBER = 10**9
MAX_SIZE = 1_000
FIRST_TIME, LAST_TIME = 0, 2**63 - 1
"""Nanoseconds since 1970: the time of a decision is between 1970 and 2262."""
NO_BOUND = ListBound()


@functools.cache
def solver_library() -> Any:
    """Return z3; it is imported by name, because the request process must not import it, not even indirectly."""
    return import_module("z3")


class ElementSlot(NamedTuple):
    """One element that a list of the call may have."""

    name: str
    is_used: Formula


@dataclass(slots=True)
class SymbolicList:
    """A list of the call: some elements, and a size. Further elements are copies of these."""

    name: str
    slots: tuple[ElementSlot, ...]
    positional: int
    """How many of the slots are the first elements in their order."""
    size: Formula


@dataclass(slots=True)
class SymbolicCall:
    """Variables of one call, made when they are first read, with what is known of their values."""

    bounds: Mapping[str, ListBound]
    full_texts: frozenset[str] = frozenset()
    """Texts of which conditions ask more than which literal they are."""
    known: list[Formula] = field(default_factory=list)
    """What holds for every call."""
    preferred: list[Formula] = field(default_factory=list)
    """What makes a call easy to read; not every call is like this."""
    lists: dict[str, SymbolicList] = field(default_factory=dict)
    encoded: dict[Any, Any] = field(default_factory=dict)
    """Conditions that were encoded: several rules may have the same one."""
    calendar: list[tuple[str, str, Any]] = field(default_factory=list)
    """Parts of the time of the decision that need a calendar: function, time zone, value."""
    _constants: dict[tuple[str, Kind], Any] = field(default_factory=dict)
    _functions: dict[str, Any] = field(default_factory=dict)
    _numbers: set[str] = field(default_factory=set)
    _literals: dict[str, int] = field(default_factory=dict)

    def constant(self, name: str, kind: Kind) -> Any:
        """Return the variable of this name and kind."""
        found = self._constants.get((name, kind))
        if found is None:
            found = self._constants[name, kind] = _sort_of(kind)(f"{name}:{kind}")
        return found

    def has(self, name: str, kind: Kind) -> bool:
        """Return True if a condition reads this variable."""
        return (name, kind) in self._constants

    def names(self) -> list[tuple[str, Kind]]:
        """Return the names and kinds of all variables."""
        return list(self._constants)

    def boolean(self, name: str) -> Formula:
        """Return the Boolean variable of this name."""
        return self.constant(name, Kind.BOOL)

    def function(self, name: str, arguments: tuple[Any, ...], kind: Kind) -> Any:
        """Return the value of an unknown function: equal arguments give an equal value."""
        sorts = [argument.sort() for argument in arguments]
        signature = f"{name}({','.join(map(str, sorts))}):{kind}"
        if signature not in self._functions:
            result = _sort_of(kind)("sort").sort()
            self._functions[signature] = solver_library().Function(signature, *sorts, result)
        return self._functions[signature](*arguments)

    @property
    def risk(self) -> Any:
        """Return the risk as a number."""
        if not self.has("risk", Kind.INT):
            risk = self.constant("risk", Kind.INT)
            self.known.append(_between(risk, 0, max(Risk)))
        return self.constant("risk", Kind.INT)

    def level(self, name: str) -> Any:
        """Return a level of trust as a number."""
        if not self.has(name, Kind.INT):
            self.known.append(_between(self.constant(name, Kind.INT), 0, 3))
        return self.constant(name, Kind.INT)

    def is_text(self, name: str, literal: str) -> Formula:
        """Return whether a text is this literal."""
        if self._is_full(name):
            return self.constant(name, Kind.STRING) == string(literal)
        return self.constant(name, Kind.CODE) == self._literals.setdefault(literal, len(self._literals))

    def text(self, name: str) -> Any:
        """Return a text in full."""
        return self.constant(name, Kind.STRING)

    def is_one_of(self, name: str, literals: Iterable[str]) -> Formula:
        """Return whether a text is one of these literals."""
        return any_of([self.is_text(name, literal) for literal in sorted(literals)])

    def restrict_text(self, name: str, values: Sequence[str]) -> None:
        """Note that a text is always one of these values."""
        if values and not self.has(name, Kind.STRING if self._is_full(name) else Kind.CODE):
            self.known.append(self.is_one_of(name, values))

    def reserve_literals(self, literals: Sequence[str]) -> None:
        """Give these literals codes of their own, so that it takes one question whether a text is one of them."""
        self._literals.update({literal: -number for number, literal in enumerate(literals, 1)})

    def is_reserved(self, name: str, literals: Sequence[str]) -> Formula:
        """Return whether a text is one of the reserved literals, which are these."""
        if self._is_full(name) or not literals:
            return self.is_one_of(name, literals)
        return _between(self.constant(name, Kind.CODE), -len(literals), -1)

    def is_same_text(self, name: str, other: str) -> Formula:
        """Return whether two texts are the same; both or none of them must be needed in full."""
        kind = Kind.STRING if self._is_full(name) else Kind.CODE
        return self.constant(name, kind) == self.constant(other, kind)

    def literal_of(self, code: int) -> str:
        """Return the literal of a code, or a text that is none of the literals."""
        known = next((literal for literal, number in self._literals.items() if number == code), None)
        if known is not None:
            return known
        return next(
            text for text in (f"other{number or ''}" for number in itertools.count()) if text not in self._literals
        )

    def _is_full(self, name: str) -> bool:
        return _pattern(name) in self.full_texts

    def now(self) -> Any:
        """Return the time of the decision."""
        if not self.has("now", Kind.TIME):
            self.known.append(_between(self.constant("now", Kind.TIME), FIRST_TIME, LAST_TIME))
        return self.constant("now", Kind.TIME)

    def number(self, name: str, kind: Kind) -> Any:
        """Return a number as an integer or as a number that need not be whole; both are the same value."""
        if (name, kind) not in self._constants:
            value = self.constant(name, kind)
            if kind is Kind.NUMBER:
                z3 = solver_library()
                self.preferred.append(z3.And(value >= -USUAL_NUMBER, value <= USUAL_NUMBER))
                self.preferred.append(z3.IsInt(value * 4))
            if name in self._numbers:
                self._join_number(name)
            self._numbers.add(name)
        return self.constant(name, kind)

    def is_whole(self, name: str) -> Formula:
        """Return whether a number is whole."""
        return self.boolean(f"{name}#whole")

    def _join_number(self, name: str) -> None:
        z3 = solver_library()
        number, integer = self.constant(name, Kind.NUMBER), self.constant(name, Kind.INT)
        whole = self.is_whole(name)
        self.known.append(whole == z3.IsInt(number))
        self.known.append(z3.Implies(whole, number == z3.ToReal(integer)))

    def argument_kind(self, name: str) -> Any:
        """Return what an argument is, as a number."""
        if not self.has(name, Kind.OTHER):
            self.known.append(_between(self.constant(name, Kind.OTHER), ABSENT, OBJECT))
        return self.constant(name, Kind.OTHER)

    def mismatch(self, name: str, stated: ArgumentType) -> Formula:
        """Return whether an argument is there and not of the stated type."""
        z3, kind = solver_library(), self.argument_kind(name)
        if stated.name == "object":
            members = [self.mismatch(f"{name}.{member}", part) for member, part in stated.members]
            return z3.And(kind != ABSENT, z3.Or(kind != OBJECT, *members))
        wrong = [z3.And(kind != ABSENT, kind != _KIND_OF[stated.name])]
        if stated.name in ("integer", "number"):
            wrong.append(z3.And(kind == NUMBER, z3.Not(self._is_number(name, stated.name))))
        elif stated.element is not None:
            wrong.append(z3.And(kind == LIST, self._elements_mismatch(name, stated.element)))
        return z3.Or(*wrong)

    def _is_number(self, name: str, stated: str) -> Formula:
        z3 = solver_library()
        if stated == "number":
            value = self.number(name, Kind.NUMBER)
            return z3.And(value >= -LARGEST_NUMBER, value <= LARGEST_NUMBER)
        value = self.number(name, Kind.INT)
        return z3.And(self.is_whole(name), value > -LARGEST_INT, value < LARGEST_INT)

    def _elements_mismatch(self, name: str, element: ArgumentType) -> Formula:
        z3 = solver_library()
        items = self.list(name)
        if not self.has(f"{name}[]", Kind.OTHER):
            self.known.append(_between(self.constant(f"{name}[]", Kind.OTHER), BOOLEAN, OBJECT))
        kind = self.constant(f"{name}[]", Kind.OTHER)
        wrong = [kind != _KIND_OF.get(element.name, OBJECT)]
        if element.name in ("integer", "number"):
            # One element may be out of range although the others are not.
            right = self.boolean(f"{name}[]#{element.name}")
            parts = (z3.Implies(slot.is_used, self._is_number(slot.name, element.name)) for slot in items.slots)
            self.known.append(z3.Implies(z3.And(right, kind == NUMBER), z3.And(*parts)))
            self.preferred.append(right)
            wrong.append(z3.Not(right))
        return z3.And(items.size > 0, z3.Or(*wrong))

    def list(self, name: str, message: str = "") -> SymbolicList:
        """Return a list; a message names the type of its elements."""
        if name not in self.lists:
            self.lists[name] = self._new_list(name, message)
        return self.lists[name]

    def _new_list(self, name: str, message: str) -> SymbolicList:
        z3 = solver_library()
        bound = self.bounds.get(_pattern(name), NO_BOUND)
        size = self.constant(f"{name}#size", Kind.INT)
        first = [ElementSlot(f"{name}[{number}]", size > number) for number in range(bound.positional)]
        others = [self._free_slot(name, bound.positional + number) for number in range(bound.elements)]
        used = z3.Sum(*(z3.If(slot.is_used, 1, 0) for slot in others))
        self.known.append(z3.And(size >= 0, size <= MAX_SIZE))
        self.known.append(z3.If(size > bound.positional, z3.And(used >= 1, used <= size - bound.positional), used == 0))
        self.known.extend(z3.Implies(after.is_used, before.is_used) for before, after in itertools.pairwise(others))
        self.preferred.append(size <= bound.positional + bound.elements)
        made = SymbolicList(name, (*first, *others), bound.positional, size)
        for slot in made.slots:
            self._describe_element(slot, message)
        return made

    def _free_slot(self, name: str, number: int) -> ElementSlot:
        slot = f"{name}[{number}]"
        return ElementSlot(slot, self.boolean(f"{slot}#used"))

    def _describe_element(self, slot: ElementSlot, message: str) -> None:
        if message.removeprefix(PREFIX) != "Effect" or not slot.name.startswith("effects["):
            return
        z3 = solver_library()
        self.restrict_text(f"{slot.name}.kind", values_of("Effect", "kind"))
        for risk in Risk:
            if kinds := [effect.value for effect in EffectKind if RISK_OF[effect] == risk]:
                is_kind = self.is_one_of(f"{slot.name}.kind", kinds)
                self.known.append(z3.Implies(z3.And(slot.is_used, is_kind), self.risk >= int(risk)))

    def group_state(self, group: str) -> tuple[Formula, Formula]:
        """Return whether a group of facts is there, and whether it is complete."""
        return self.boolean(f"{group}#present"), self.boolean(f"{group}#complete")


def _between(value: Any, least: int, most: int) -> Formula:
    return solver_library().And(value >= int(least), value <= int(most))


def _pattern(name: str) -> str:
    """Return a name without the places of the elements that it belongs to."""
    return "[]".join(part.partition("]")[2] if number else part for number, part in enumerate(name.split("[")))


def _sort_of(kind: Kind) -> Any:
    z3 = solver_library()
    constants = {Kind.BOOL: z3.Bool, Kind.STRING: z3.String, Kind.NUMBER: z3.Real}
    return constants.get(kind, z3.Int)


def string(text: str) -> Any:
    """Return a text as a value of the solver."""
    plain = (char if char.isascii() and char.isalnum() else f"\\u{{{ord(char):x}}}" for char in text)
    return solver_library().StringVal("".join(plain))


def values_of(message: str, field_name: str) -> tuple[str, ...]:
    """Return the values of a field whose set of values is closed."""
    fields = MESSAGES.get(message.removeprefix(PREFIX), ())
    return next((known.values for known in fields if known.name == field_name), ())


def is_group(name: str) -> bool:
    """Return True if this is a group of facts."""
    return name in GROUPS


def any_of(formulas: Sequence[Formula]) -> Formula:
    """Return the disjunction of formulas; without any, false."""
    if len(formulas) == 1:
        return formulas[0]
    return solver_library().Or(*formulas) if formulas else solver_library().BoolVal(False)
