"""Texts that conditions only compare with literals: a proof needs no more of them than which literal they are."""

from collections.abc import Iterable, Mapping

from qwed.policy.analysis.list_bounds import list_name
from qwed.policy.analysis.terms import (
    Exists,
    Fact,
    Kind,
    Literal,
    Opaque,
    Operation,
    Term,
    is_function,
    kind_in,
    parts_of,
)

_NAMES = {"tool.name", "action.type"}
"""Texts that are compared with each other."""


def texts_in_full(terms: Iterable[Term]) -> frozenset[str]:
    """Return the texts of which a condition asks more than which literal they are."""
    found: set[str] = set()
    for term in terms:
        _collect(term, {}, found)
    if not found.isdisjoint(_NAMES):
        found |= _NAMES
    return frozenset(found)


def is_literal_comparison(term: Operation) -> bool:
    """Return True if this compares a text of the call with a literal."""
    if term.name != "equal":
        return False
    left, right = term.operands
    if isinstance(left, Literal):
        left, right = right, left
    return isinstance(left, Fact) and isinstance(right, Literal) and right.kind is Kind.STRING


def _collect(term: Term, owners: Mapping[str, str], found: set[str]) -> None:
    if isinstance(term, Opaque) and not is_function(term):
        return
    if isinstance(term, Operation) and is_literal_comparison(term):
        return
    if isinstance(term, Operation) and term.name in ("item", "equal_lists") and isinstance(term.operands[0], Fact):
        found.add(f"{list_name(term.operands[0], owners)}[]")
    if isinstance(term, Fact) and kind_in(term) is Kind.STRING:
        found.add(list_name(term, owners))
    inside = owners
    if isinstance(term, Exists):
        inside = {**owners, term.variable: list_name(term.source, owners)}
    for part in parts_of(term):
        _collect(part, inside, found)
