"""Operations on sets of possible values: constants are computed, partly known texts stay partly known."""

from collections.abc import Sequence
from itertools import islice, product

from qwed.guards._javascript.abstract_values import (
    ANY,
    MAX_ATOMS,
    UNKNOWN_VALUE,
    Atom,
    Const,
    PartialText,
    Path,
    Plain,
    Value,
    const,
    key_of,
)
from qwed.guards._javascript.constant_folding import BINARY, Folder, UnfoldableError, fold

MAX_PART = 300
_HOMES = frozenset({"process.env.HOME", "process.env.USERPROFILE", "process.env.HOMEPATH"})


def combine(folder: Folder | None, values: Sequence[Value]) -> Value:
    """Return the results of `folder` for every choice of constants, and the unknown value for other choices."""
    if folder is None or any(not value for value in values):
        return UNKNOWN_VALUE
    atoms: set[Atom] = set()
    choices = [[atom.value for atom in value if isinstance(atom, Const)] for value in values]
    if any(len(choice) < len(value) for choice, value in zip(choices, values, strict=True)):
        atoms.add(ANY)
    for choice in islice(product(*choices), MAX_ATOMS):
        try:
            atoms.update(const(fold(folder, choice)))
        except UnfoldableError:
            atoms.add(ANY)
    return frozenset(atoms) or UNKNOWN_VALUE


def concatenate(one: Value, other: Value) -> Value:
    """Return `one + other`; the known parts of a partly known text are kept."""
    if not _has_text(one) and not _has_text(other):
        return combine(BINARY["+"], [one, other])
    atoms: set[Atom] = set()
    for left, right in islice(product(_pieces(one), _pieces(other)), MAX_ATOMS):
        atoms.add(_concatenate_pieces(left, right))
    return frozenset(atoms) or UNKNOWN_VALUE


def _has_text(value: Value) -> bool:
    return any(
        isinstance(atom, PartialText) or (isinstance(atom, Const) and isinstance(atom.value, str)) for atom in value
    )


def _pieces(value: Value) -> list[Plain | PartialText]:
    """Return the constants first, then one placeholder for all unknown values."""
    pieces: list[Plain | PartialText] = [atom.value for atom in value if isinstance(atom, Const)]
    pieces += [atom for atom in value if isinstance(atom, PartialText)]
    rest = {_placeholder(atom) for atom in value if not isinstance(atom, Const | PartialText)}
    return [*pieces, *(PartialText(text) for text in sorted(rest))] or [PartialText("*")]


def _placeholder(atom: Atom) -> str:
    return "~" if isinstance(atom, Path) and atom.name in _HOMES else "*"


def _concatenate_pieces(left: Plain | PartialText, right: Plain | PartialText) -> Atom:
    if isinstance(left, PartialText) or isinstance(right, PartialText):
        text = (left.text if isinstance(left, PartialText) else key_of(left)) + (
            right.text if isinstance(right, PartialText) else key_of(right)
        )
        return PartialText(text[:MAX_PART])
    try:
        return next(iter(const(fold(BINARY["+"], (left, right)))))
    except UnfoldableError:
        return ANY
