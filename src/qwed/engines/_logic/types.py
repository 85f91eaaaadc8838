"""Types of the logic language: the sort of every name, predicate and function (INTERFACES 3).

A name is Bool where a Bool is needed, a string where it is compared with one, a thing where it is an argument of a
predicate, else Real, unless it is declared. All things share one uninterpreted domain, which is not empty.
"""

from dataclasses import dataclass, field
from enum import StrEnum

from qwed.engines._logic.sexpr import LogicRefusalError


class Sort(StrEnum):
    """Sort of a value."""

    BOOL = "Bool"
    INT = "Int"
    REAL = "Real"
    STRING = "String"
    THING = "Thing"


class TermKind(StrEnum):
    """Kind of a sort as the operators see it: Int and Real are both numbers."""

    TRUTH = "Bool"
    NUMBER = "a number"
    TEXT = "a string"
    THING = "a thing"


DECLARABLE = {sort.value.lower(): sort for sort in Sort}
KIND_OF = {
    Sort.BOOL: TermKind.TRUTH,
    Sort.INT: TermKind.NUMBER,
    Sort.REAL: TermKind.NUMBER,
    Sort.STRING: TermKind.TEXT,
    Sort.THING: TermKind.THING,
}
SORT_OF = {
    TermKind.TRUTH: Sort.BOOL,
    TermKind.NUMBER: Sort.REAL,
    TermKind.TEXT: Sort.STRING,
    TermKind.THING: Sort.THING,
}


@dataclass(eq=False, slots=True)
class Slot:
    """Inferred kind of one expression so far; slots that must agree are merged."""

    inferred: TermKind | None = None
    thing: bool = False
    """True if the default kind is a thing, because it occurs in first-order notation."""
    merged: "Slot | None" = None

    def root(self) -> "Slot":
        """Return the slot that represents all merged ones."""
        slot = self
        while slot.merged is not None:
            slot = slot.merged
        return slot

    @property
    def kind(self) -> TermKind:
        """Final kind, valid once every statement is typed."""
        root = self.root()
        return root.inferred or (TermKind.THING if root.thing else TermKind.NUMBER)


@dataclass(eq=False, slots=True)
class Symbol:
    """One variable or constant."""

    name: str
    declared: Sort | None = None
    slot: Slot = field(default_factory=Slot)

    def __post_init__(self) -> None:
        if self.declared is not None:
            self.slot.inferred = KIND_OF[self.declared]

    @property
    def sort(self) -> Sort:
        """Final sort, valid once every statement is typed."""
        return self.declared or SORT_OF[self.slot.kind]


@dataclass(eq=False, slots=True)
class Relation:
    """One predicate or function; a predicate is a function to truth values."""

    name: str
    arguments: tuple[Slot, ...]
    result: Slot


@dataclass(frozen=True, slots=True)
class Term:
    """Typed tree: `operator` is canonical, `names` are those a quantifier binds."""

    operator: str
    slot: Slot
    at: int
    arguments: tuple["Term", ...] = ()
    text: str = ""
    names: tuple[Symbol, ...] = ()
    symbol: Symbol | None = None
    relation: Relation | None = None

    @property
    def kind(self) -> TermKind:
        """Final kind, valid once every statement is typed."""
        return self.slot.kind


def type_error(message: str, at: int) -> LogicRefusalError:
    """Return the refusal of an expression that is not well typed."""
    return LogicRefusalError("TYPE_ERROR", message, at)


def unify(one: Slot, other: Slot, at: int) -> None:
    """Require that both slots have the same kind."""
    one, other = one.root(), other.root()
    if one is other:
        return
    if one.inferred is not None and other.inferred is not None and one.inferred is not other.inferred:
        raise type_error(f"{one.inferred} is used where {other.inferred} is needed", at)
    other.inferred = one.inferred or other.inferred
    other.thing = one.thing or other.thing
    one.merged = other
