"""What an expression may be, as a set of atoms: a library name, a constant, a function or a literal of the program."""

from dataclasses import dataclass

from qwed.guards._javascript.tree import Node

MAX_ATOMS = 48
MAX_TEXT = 4_000
MAX_ITEMS = 512

Plain = str | int | float | bool | tuple["Plain", ...] | None


@dataclass(frozen=True, slots=True)
class Path:
    """A dotted library name."""

    name: str


@dataclass(frozen=True, slots=True)
class Const:
    """A value written in the program or computed from such."""

    value: Plain


@dataclass(frozen=True, slots=True)
class Part:
    """A text of which we know only some; `*` stands for the rest."""

    text: str


@dataclass(frozen=True, slots=True)
class Func:
    """A function or class of the program."""

    node: Node


@dataclass(frozen=True, slots=True)
class Literal:
    """An array or object written out in the program."""

    node: Node


@dataclass(frozen=True, slots=True)
class _Else:
    name: str


ANY = _Else("any")
"""Something else, of which we know nothing."""
FLOOD = _Else("flood")
"""So many values that only library names are followed."""

Atom = Path | Const | Part | Func | Literal | _Else
Value = frozenset[Atom]
NOTHING: Value = frozenset()
SOMETHING: Value = frozenset({ANY})


def const(value: Plain) -> Value:
    """One constant; something else where it is too long to follow."""
    if isinstance(value, str | tuple) and len(value) > (MAX_TEXT if isinstance(value, str) else MAX_ITEMS):
        return SOMETHING
    return frozenset({Const(value)})


def joined(one: Value, other: Value) -> Value:
    """Either of the two; library names alone once there are too many."""
    if not other or one is other:
        return one
    if not one or one <= other:
        return other
    if other <= one:
        return one
    return bounded(one | other)


def bounded(value: Value) -> Value:
    """`value`, or the library names in it where it is too large to follow."""
    if len(value) <= MAX_ATOMS and FLOOD not in value:
        return value
    return frozenset(atom for atom in value if isinstance(atom, Path)) | {ANY, FLOOD}


def paths(value: Value) -> list[str]:
    """The library names in `value`, in order."""
    return sorted(atom.name for atom in value if isinstance(atom, Path))


def constants(value: Value) -> list[Plain]:
    """The constants in `value`."""
    return [atom.value for atom in value if isinstance(atom, Const)]


def texts(value: Value) -> list[str]:
    """The constant strings in `value`, in order, partly known ones too."""
    known = [atom.value for atom in value if isinstance(atom, Const) and isinstance(atom.value, str)]
    return sorted({*known, *(atom.text for atom in value if isinstance(atom, Part))})


def keys(value: Value) -> list[str]:
    """The property names that `value` can be, in order."""
    return sorted({key_of(each) for each in constants(value)})


def key_of(value: Plain) -> str:
    """A constant as the property it names: `obj[["a"]]` is `obj.a`."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float) and value.is_integer() and abs(value) < 1e15:
        return str(int(value))
    if isinstance(value, tuple):
        return ",".join("" if each is None else key_of(each) for each in value)
    return "undefined" if value is None else str(value)


def functions(value: Value) -> list[Node]:
    """The functions of the program in `value`, in the order of their lines."""
    return sorted((atom.node for atom in value if isinstance(atom, Func)), key=lambda node: node.line)
