"""Operations on sets of values: constants are computed, what is partly known stays partly known."""

from collections.abc import Sequence
from itertools import islice, product

from qwed.guards._javascript.atoms import (
    ANY,
    MAX_ATOMS,
    SOMETHING,
    Atom,
    Const,
    Part,
    Path,
    Plain,
    Value,
    const,
    key_of,
)
from qwed.guards._javascript.folding import BINARY, Folder, Unfoldable, folded

MAX_PART = 300
_HOMES = frozenset({"process.env.HOME", "process.env.USERPROFILE", "process.env.HOMEPATH"})


def combined(folder: Folder | None, values: Sequence[Value]) -> Value:
    """What `folder` makes of every choice of constants, and something else where there are other choices."""
    if folder is None or any(not value for value in values):
        return SOMETHING
    found: set[Atom] = set()
    choices = [[atom.value for atom in value if isinstance(atom, Const)] for value in values]
    if any(len(choice) < len(value) for choice, value in zip(choices, values, strict=True)):
        found.add(ANY)
    for choice in islice(product(*choices), MAX_ATOMS):
        try:
            found.update(const(folded(folder, choice)))
        except Unfoldable:
            found.add(ANY)
    return frozenset(found) or SOMETHING


def concatenated(one: Value, other: Value) -> Value:
    """`one + other`; a text of which only some is known keeps that."""
    if not _has_text(one) and not _has_text(other):
        return combined(BINARY["+"], [one, other])
    found: set[Atom] = set()
    for left, right in islice(product(_pieces(one), _pieces(other)), MAX_ATOMS):
        found.add(_added(left, right))
    return frozenset(found) or SOMETHING


def _has_text(value: Value) -> bool:
    return any(isinstance(atom, Part) or (isinstance(atom, Const) and isinstance(atom.value, str)) for atom in value)


def _pieces(value: Value) -> list[Plain | Part]:
    """Constants first; one star for all that is unknown."""
    known: list[Plain | Part] = [atom.value for atom in value if isinstance(atom, Const)]
    known += [atom for atom in value if isinstance(atom, Part)]
    rest = {_star(atom) for atom in value if not isinstance(atom, Const | Part)}
    return [*known, *(Part(text) for text in sorted(rest))] or [Part("*")]


def _star(atom: Atom) -> str:
    return "~" if isinstance(atom, Path) and atom.name in _HOMES else "*"


def _added(left: Plain | Part, right: Plain | Part) -> Atom:
    if isinstance(left, Part) or isinstance(right, Part):
        text = (left.text if isinstance(left, Part) else key_of(left)) + (
            right.text if isinstance(right, Part) else key_of(right)
        )
        return Part(text[:MAX_PART])
    try:
        return next(iter(const(folded(BINARY["+"], (left, right)))))
    except Unfoldable:
        return ANY
