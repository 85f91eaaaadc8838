"""Typed terms of a condition: what the proof understands of it, independent of position and spelling."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any


class Kind(StrEnum):
    """Kind of a value."""

    BOOL = "bool"
    INT = "int"
    NUMBER = "double"
    STRING = "string"
    TIME = "timestamp"
    DURATION = "duration"
    CODE = "code"
    """A text of which it is only known which literal it is."""
    OTHER = "other"
    """Lists, messages and whatever else has no value of its own in a proof."""


_KINDS = {kind.value: kind for kind in Kind if kind not in (Kind.CODE, Kind.OTHER)}


def kind_of(cel_type: str) -> Kind:
    """Return the kind of a type as the checker spells it."""
    return _KINDS.get(cel_type, Kind.OTHER)


@dataclass(frozen=True, slots=True)
class Literal:
    """A constant; times and durations are whole nanoseconds."""

    value: Any
    kind: Kind


@dataclass(frozen=True, slots=True)
class Fact:
    """A value of the call, such as `sql.limit`, or of an element of a list that a loop walks."""

    root: str
    """Name of a variable; `$0`, `$1`, ... for the variable of a loop at this depth."""
    path: tuple[str, ...]
    type: str
    """Type as the checker spells it."""

    @property
    def text(self) -> str:
        """The fact as a rule spells it."""
        return ".".join((self.root, *self.path))


@dataclass(frozen=True, slots=True)
class Present:
    """Test that an optional fact is there."""

    fact: Fact


@dataclass(frozen=True, slots=True)
class RiskIn:
    """Test that the risk is one of these levels."""

    levels: frozenset[int]


@dataclass(frozen=True, slots=True)
class Usage:
    """A counter over earlier calls."""

    scope: str
    measure: str
    tool: str
    argument: str
    seconds: int


@dataclass(frozen=True, slots=True)
class Operation:
    """An operator or function that the proof understands."""

    name: str
    operands: "tuple[Term, ...]"
    kind: Kind


@dataclass(frozen=True, slots=True)
class Exists:
    """Test that an element of a list of the call satisfies the body."""

    source: Fact
    variable: str
    body: "Term"


@dataclass(frozen=True, slots=True)
class Opaque:
    """A value that the proof does not understand: equal operands give the same value, and nothing else is known."""

    name: str
    operands: "tuple[Term, ...]"
    kind: Kind
    can_fail: bool
    position: int = field(default=0, compare=False)


@dataclass(frozen=True, slots=True)
class Items:
    """A list that is written out, as the operand of an opaque value."""

    items: "tuple[Term, ...]"


Term = Literal | Fact | Present | RiskIn | Usage | Operation | Exists | Opaque | Items


def parts_of(term: Term) -> tuple[Term, ...]:
    """Return the terms directly below a term."""
    if isinstance(term, Operation | Opaque):
        return term.operands
    if isinstance(term, Exists):
        return (term.source, term.body)
    if isinstance(term, Items):
        return term.items
    return (term.fact,) if isinstance(term, Present) else ()


_LOOPS = frozenset({"exists", "all", "exists_one", "filter", "map_list"})


def kind_in(term: Term) -> Kind:
    """Return the kind of a term."""
    if isinstance(term, Fact):
        return kind_of(term.type)
    if isinstance(term, Usage):
        return Kind.INT if term.measure == "count" else Kind.NUMBER
    if isinstance(term, Items):
        return Kind.OTHER
    return term.kind if isinstance(term, Literal | Operation | Opaque) else Kind.BOOL


def is_function(term: Opaque) -> bool:
    """Return True if an opaque value depends on nothing but values that a proof has."""
    if term.name in _LOOPS or term.kind is Kind.OTHER:
        return False
    return all(kind_in(operand) is not Kind.OTHER for operand in term.operands)


def walk(term: Term) -> Iterator[Term]:
    """Yield a term and all below it."""
    waiting = [term]
    while waiting:
        found = waiting.pop()
        yield found
        waiting.extend(reversed(parts_of(found)))
