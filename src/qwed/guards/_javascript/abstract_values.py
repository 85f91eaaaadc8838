"""Possible values of an expression as a set of atoms: a library name, a constant, a function or a literal of the
program."""

from dataclasses import dataclass

from qwed.guards._javascript.syntax_tree import SyntaxNode

MAX_ATOMS = 48
MAX_TEXT = 4_000
MAX_ITEMS = 512

Plain = str | int | float | bool | tuple["Plain", ...] | None


@dataclass(frozen=True, slots=True)
class Path:
    """Dotted library name."""

    name: str


@dataclass(frozen=True, slots=True)
class Const:
    """Value written in the program or computed from such values."""

    value: Plain


@dataclass(frozen=True, slots=True)
class PartialText:
    """Partly known text; `*` stands for the unknown parts."""

    text: str


@dataclass(frozen=True, slots=True)
class Func:
    """Function or class of the program."""

    node: SyntaxNode


@dataclass(frozen=True, slots=True)
class Literal:
    """Array or object literal of the program."""

    node: SyntaxNode


@dataclass(frozen=True, slots=True)
class _Marker:
    name: str


ANY = _Marker("any")
"""Unknown value."""
FLOOD = _Marker("flood")
"""Marker for too many values: only library names are still followed."""

Atom = Path | Const | PartialText | Func | Literal | _Marker
Value = frozenset[Atom]
NO_VALUE: Value = frozenset()
UNKNOWN_VALUE: Value = frozenset({ANY})


def const(value: Plain) -> Value:
    """Return a constant as a value, or the unknown value if it is too long."""
    if isinstance(value, str | tuple) and len(value) > (MAX_TEXT if isinstance(value, str) else MAX_ITEMS):
        return UNKNOWN_VALUE
    return frozenset({Const(value)})


def join(one: Value, other: Value) -> Value:
    """Return the union of the two values; only library names if there are too many."""
    if not other or one is other:
        return one
    if not one or one <= other:
        return other
    if other <= one:
        return one
    return limit(one | other)


def limit(value: Value) -> Value:
    """Return `value`, or only the library names in it if it is too large."""
    if len(value) <= MAX_ATOMS and FLOOD not in value:
        return value
    return frozenset(atom for atom in value if isinstance(atom, Path)) | {ANY, FLOOD}


def paths(value: Value) -> list[str]:
    """Return the library names in `value`, sorted."""
    return sorted(atom.name for atom in value if isinstance(atom, Path))


def constants(value: Value) -> list[Plain]:
    """Return the constants in `value`."""
    return [atom.value for atom in value if isinstance(atom, Const)]


def texts(value: Value) -> list[str]:
    """Return the constant strings in `value`, sorted, including partly known ones."""
    exact = [atom.value for atom in value if isinstance(atom, Const) and isinstance(atom.value, str)]
    return sorted({*exact, *(atom.text for atom in value if isinstance(atom, PartialText))})


def keys(value: Value) -> list[str]:
    """Return the property names that `value` can be, sorted."""
    return sorted({key_of(constant) for constant in constants(value)})


def key_of(value: Plain) -> str:
    """Return the property name of a constant: `obj[["a"]]` is `obj.a`."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float) and value.is_integer() and abs(value) < 1e15:
        return str(int(value))
    if isinstance(value, tuple):
        return ",".join("" if item is None else key_of(item) for item in value)
    return "undefined" if value is None else str(value)


def functions(value: Value) -> list[SyntaxNode]:
    """Return the functions of the program in `value`, sorted by line."""
    return sorted((atom.node for atom in value if isinstance(atom, Func)), key=lambda node: node.line)
