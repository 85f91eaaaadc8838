"""INTERFACES 3: what the operators take and give, and the sort of every name, predicate and function.

A name is Bool where a Bool is needed, a string where it is compared with one, a thing where a predicate is said of it,
else Real, unless it is declared. All things share one uninterpreted domain, which is not empty.
"""

from dataclasses import dataclass, field
from enum import StrEnum

from qwed.engines._logic.syntax import Refusal


class Sort(StrEnum):
    """What a value can be."""

    BOOL = "Bool"
    INT = "Int"
    REAL = "Real"
    STRING = "String"
    THING = "Thing"


class Kind(StrEnum):
    """What a sort is to the operators: Int and Real are both numbers."""

    TRUTH = "Bool"
    NUMBER = "a number"
    TEXT = "a string"
    THING = "a thing"


DECLARABLE = {sort.value.lower(): sort for sort in Sort}
KIND_OF = {
    Sort.BOOL: Kind.TRUTH,
    Sort.INT: Kind.NUMBER,
    Sort.REAL: Kind.NUMBER,
    Sort.STRING: Kind.TEXT,
    Sort.THING: Kind.THING,
}
SORT_OF = {Kind.TRUTH: Sort.BOOL, Kind.NUMBER: Sort.REAL, Kind.TEXT: Sort.STRING, Kind.THING: Sort.THING}


@dataclass(eq=False, slots=True)
class Slot:
    """What is known so far about the kind of one expression; slots that must agree are merged."""

    known: Kind | None = None
    thing: bool = False
    """Whether it is a thing where nothing asks for another kind: it stands in first-order notation."""
    merged: "Slot | None" = None

    def root(self) -> "Slot":
        """The slot that speaks for all merged ones."""
        here = self
        while here.merged is not None:
            here = here.merged
        return here

    @property
    def kind(self) -> Kind:
        """The kind it ends with, once every statement is typed."""
        root = self.root()
        return root.known or (Kind.THING if root.thing else Kind.NUMBER)


@dataclass(eq=False, slots=True)
class Symbol:
    """One variable or constant."""

    name: str
    declared: Sort | None = None
    slot: Slot = field(default_factory=Slot)

    def __post_init__(self) -> None:
        if self.declared is not None:
            self.slot.known = KIND_OF[self.declared]

    @property
    def sort(self) -> Sort:
        """The sort it ends with."""
        return self.declared or SORT_OF[self.slot.kind]


@dataclass(eq=False, slots=True)
class Relation:
    """One predicate or function; a predicate is a function to truth values."""

    name: str
    arguments: tuple[Slot, ...]
    result: Slot


@dataclass(frozen=True, slots=True)
class Term:
    """A typed tree: `operator` is canonical, `names` are those a quantifier binds."""

    operator: str
    slot: Slot
    at: int
    arguments: tuple["Term", ...] = ()
    text: str = ""
    names: tuple[Symbol, ...] = ()
    symbol: Symbol | None = None
    relation: Relation | None = None

    @property
    def kind(self) -> Kind:
        """What it is once every statement is typed."""
        return self.slot.kind


def type_error(message: str, at: int) -> Refusal:
    """The refusal of an expression that has no sort."""
    return Refusal("TYPE_ERROR", message, at)


def unify(one: Slot, other: Slot, at: int) -> None:
    """Both are of one kind from here on."""
    one, other = one.root(), other.root()
    if one is other:
        return
    if one.known is not None and other.known is not None and one.known is not other.known:
        raise type_error(f"{one.known} stands where {other.known} is needed", at)
    other.known = one.known or other.known
    other.thing = one.thing or other.thing
    one.merged = other
