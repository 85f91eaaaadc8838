"""Bounds of lists: the number of elements of a list that a proof needs.

A condition asks of a list only whether an element satisfies something, how long the list is, and what its first
elements are. Whether an element satisfies something is shown by one element. So a list may be cut down to one element
for each such question, and a proof over lists of that many elements is one over lists of every length.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from qwed.policy.analysis.terms import Exists, Fact, Literal, Opaque, Operation, Term, is_function, parts_of

MAX_ELEMENTS = 24
"""Elements of one list; a proof that needs more is not attempted."""


@dataclass(frozen=True, slots=True)
class ListBound:
    """Bound of one list."""

    elements: int = 1
    positional: int = 0
    """Elements that are asked for by their place."""


@dataclass(slots=True)
class _Questions:
    asked: set[tuple[Term, tuple[str, ...]]] = field(default_factory=set)
    """Bodies of loops, each with the lists of the other loops that it depends on."""
    positional: int = 0


class TooManyElementsError(Exception):
    """The conditions ask more of a list than a proof can answer."""


def list_bounds(terms: Iterable[Term]) -> Mapping[str, ListBound]:
    """Return how many elements of each list these conditions need; raise TooManyElementsError if they are too many."""
    found: dict[str, _Questions] = {}
    for term in terms:
        _collect(term, {}, found)
    counts = dict.fromkeys(found, 1)
    while True:
        after = {name: 1 + sum(_repeats(owners, counts, found) for _, owners in found[name].asked) for name in found}
        for name, count in after.items():
            if count + found[name].positional > MAX_ELEMENTS:
                raise TooManyElementsError(name)
        if after == counts:
            return {name: ListBound(count, found[name].positional) for name, count in counts.items()}
        counts = after


def _repeats(owners: tuple[str, ...], counts: Mapping[str, int], found: Mapping[str, _Questions]) -> int:
    """Return how often a question is asked: once for each element that it depends on."""
    repeats = 1
    for name in owners:
        repeats *= counts[name] + found[name].positional
    return repeats


def list_name(fact: Fact, owners: Mapping[str, str]) -> str:
    """Return the name of a list, with the list that its element belongs to."""
    root = f"{owners[fact.root]}[]" if fact.root in owners else fact.root
    return ".".join((root, *fact.path))


def _collect(term: Term, owners: Mapping[str, str], found: dict[str, _Questions]) -> None:
    if isinstance(term, Opaque) and not is_function(term):
        return
    if isinstance(term, Exists):
        name = list_name(term.source, owners)
        questions = found.setdefault(name, _Questions())
        others = _free_variables(term.body) - {term.variable, term.source.root}
        questions.asked.add((term, tuple(sorted(owners[variable] for variable in others))))
        _collect(term.body, {**owners, term.variable: name}, found)
        return
    if isinstance(term, Operation) and term.name in ("item", "equal_lists") and isinstance(term.operands[0], Fact):
        questions = found.setdefault(list_name(term.operands[0], owners), _Questions())
        index = term.operands[1] if term.name == "item" else None
        places = int(index.value) + 1 if isinstance(index, Literal) else len(term.operands) - 1
        questions.positional = max(questions.positional, places)
    for part in parts_of(term):
        _collect(part, owners, found)


def _free_variables(term: Term) -> set[str]:
    if isinstance(term, Fact):
        return {term.root} if term.root.startswith("$") else set()
    found: set[str] = set().union(*(_free_variables(part) for part in parts_of(term)))
    return found - {term.variable} if isinstance(term, Exists) else found
