"""Unified predicate names for an argument: `All humans are mortal` and `Human(socrates)` use the same predicate.

English words keep kinds of their own until here. A class is matched with the predicate whose singular words equal it,
an individual with the constant that differs only in case. Two candidates, or one word in two roles, are refused, never
guessed: in `time flies`, `flies` is not the insect.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from qwed.engines._logic.morphology import FUNCTION_WORDS, singular
from qwed.engines._logic.notation import ParsedText
from qwed.engines._logic.sexpr import Atom, ListNode, NotFormalError, Tree, iter_atoms
from qwed.engines._logic.trampoline import Step, run, run_all

_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z0-9]+|[^\W_A-Za-z0-9]+")
_SYMBOL_KINDS = {"CLASS": "PREDICATE", "ADJECTIVE": "PREDICATE", "VERB": "PREDICATE", "INDIVIDUAL": "NAME"}
_ENGLISH = frozenset({*_SYMBOL_KINDS, "WEATHER", "BARE"})


@dataclass(frozen=True, slots=True)
class Vocabulary:
    """Statements with unified names, and pairs of phrases that may be related."""

    trees: tuple[Tree, ...]
    doubts: tuple[str, ...]


def unify_vocabulary(texts: Sequence[ParsedText]) -> Vocabulary:
    """Unify the names of all statements; raise NotFormalError if a word would have two meanings."""
    trees = [tree for parsed in texts for tree in parsed.trees]
    if not any(parsed.english for parsed in texts):
        return Vocabulary(tuple(trees), ())
    atoms = [atom for tree in trees for atom in iter_atoms(tree)]
    _refuse_two_roles(atoms)
    english = {(atom.kind, atom.text) for atom in atoms if atom.kind in _SYMBOL_KINDS}
    symbols = {(atom.kind, atom.text) for atom in atoms if atom.kind in _SYMBOL_KINDS.values()}
    names = {key: _symbol_for(*key, symbols) for key in english}
    return Vocabulary(tuple(run(_rename(tree, names)) for tree in trees), tuple(_doubts(atoms)))


def _refuse_two_roles(atoms: Iterable[Atom]) -> None:
    roles: dict[str, str] = {}
    for atom in atoms:
        if atom.kind in _ENGLISH and roles.setdefault(atom.text.lower(), atom.kind) != atom.kind:
            raise NotFormalError(f"`{atom.text[:40]}` is used in two roles, name one of them differently")


def _symbol_for(kind: str, text: str, symbols: set[tuple[str, str]]) -> str:
    """Return the symbol that matches an English word, or the word itself."""
    fold = str.lower if kind == "INDIVIDUAL" else predicate_words
    matches = [
        name
        for symbol_kind, name in symbols
        if symbol_kind == _SYMBOL_KINDS[kind] and fold(name) in (text, text.replace(" ", "_"))
    ]
    if len(matches) > 1:
        raise NotFormalError(f"`{text[:40]}` could be any of {', '.join(sorted(matches))}")
    return matches[0] if matches else text


def predicate_words(name: str) -> str:
    """Return `BlueCars` or `is_blue_car` as English words, in the form the English parser generates."""
    words = [word.lower() for word in _WORD.findall(name)]
    if len(words) > 1 and words[0] == "is":
        words = words[1:]
    return " ".join([*words[:-1], singular(words[-1])]) if words else name


def _rename(tree: Tree, names: Mapping[tuple[str, str], str]) -> Step[Tree]:
    if isinstance(tree, Atom):
        kind = _SYMBOL_KINDS.get(tree.kind, "NAME" if tree.kind in _ENGLISH else tree.kind)
        return Atom(kind, names.get((tree.kind, tree.text), tree.text), tree.at, tree.depth)
    items = yield run_all(_rename(item, names) for item in tree.items)
    return ListNode(tuple(items), tree.at, tree.depth)


def _doubts(atoms: Iterable[Atom]) -> Iterator[str]:
    """Yield pairs of phrases that share a word or a stem, since a relation between them was not parsed."""
    phrases = sorted({atom.text for atom in atoms if atom.kind in _ENGLISH - {"BARE"}})
    for index, one in enumerate(phrases):
        for other in phrases[index + 1 :]:
            if any(_may_be_related(a, b) for a in _content_words(one) for b in _content_words(other)):
                yield f"`{one}` and `{other}`"


def _content_words(phrase: str) -> set[str]:
    return {singular(word) for word in phrase.lower().split()} - FUNCTION_WORDS


def _may_be_related(one: str, other: str) -> bool:
    short, long = sorted((one, other), key=len)
    return one == other or (len(short) > 3 and (long.startswith(short) or long.endswith(short)))
