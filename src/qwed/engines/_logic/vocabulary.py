"""One vocabulary for an argument: `All humans are mortal` and `Human(socrates)` speak of the same predicate.

English words keep kinds of their own until here. A class meets the predicate whose name folds to it, an individual the
constant that differs in case only; two candidates, or one word in two roles, are refused and never guessed: the flies
that are insects are not what time does.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from qwed.engines._logic.reading import Reading
from qwed.engines._logic.syntax import Atom, Form, NotFormal, Tree, atoms_of
from qwed.engines._logic.walk import Step, each, walk
from qwed.engines._logic.words import LIGHT, folded

_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z0-9]+|[^\W_A-Za-z0-9]+")
_MEETS = {"CLASS": "PREDICATE", "QUALITY": "PREDICATE", "DEED": "PREDICATE", "INDIVIDUAL": "NAME"}
_ENGLISH = frozenset({*_MEETS, "SAYING", "BARE"})


@dataclass(frozen=True, slots=True)
class Vocabulary:
    """The statements with their names joined, and words that may mean more than was read from them."""

    trees: tuple[Tree, ...]
    doubts: tuple[str, ...]


def joined(readings: Sequence[Reading]) -> Vocabulary:
    """The statements of `readings` in one vocabulary; NotFormal where a word would have two meanings."""
    trees = [tree for reading in readings for tree in reading.trees]
    if not any(reading.english for reading in readings):
        return Vocabulary(tuple(trees), ())
    atoms = [atom for tree in trees for atom in atoms_of(tree)]
    _refuse_two_roles(atoms)
    english = {(atom.kind, atom.text) for atom in atoms if atom.kind in _MEETS}
    symbols = {(atom.kind, atom.text) for atom in atoms if atom.kind in _MEETS.values()}
    names = {key: _meeting(*key, symbols) for key in english}
    return Vocabulary(tuple(walk(_renamed(tree, names)) for tree in trees), tuple(_doubts(atoms)))


def _refuse_two_roles(atoms: Iterable[Atom]) -> None:
    roles: dict[str, str] = {}
    for atom in atoms:
        if atom.kind in _ENGLISH and roles.setdefault(atom.text.lower(), atom.kind) != atom.kind:
            raise NotFormal(f"`{atom.text[:40]}` is used in two roles, name one of them differently")


def _meeting(kind: str, text: str, symbols: set[tuple[str, str]]) -> str:
    """The symbol an English word stands for, or the word itself."""
    fold = str.lower if kind == "INDIVIDUAL" else predicate_words
    found = [name for known, name in symbols if known == _MEETS[kind] and fold(name) in (text, text.replace(" ", "_"))]
    if len(found) > 1:
        raise NotFormal(f"`{text[:40]}` could be any of {', '.join(sorted(found))}")
    return found[0] if found else text


def predicate_words(name: str) -> str:
    """`BlueCars` and `is_blue_car` as the English reader writes them."""
    words = [word.lower() for word in _WORD.findall(name)]
    if len(words) > 1 and words[0] == "is":
        words = words[1:]
    return " ".join([*words[:-1], folded(words[-1])]) if words else name


def _renamed(tree: Tree, names: Mapping[tuple[str, str], str]) -> Step[Tree]:
    if isinstance(tree, Atom):
        kind = _MEETS.get(tree.kind, "NAME" if tree.kind in _ENGLISH else tree.kind)
        return Atom(kind, names.get((tree.kind, tree.text), tree.text), tree.at, tree.depth)
    items = yield each(_renamed(item, names) for item in tree.items)
    return Form(tuple(items), tree.at, tree.depth)


def _doubts(atoms: Iterable[Atom]) -> Iterator[str]:
    """Pairs of phrases that share a word or a stem: what connects them was not read."""
    phrases = sorted({atom.text for atom in atoms if atom.kind in _ENGLISH - {"BARE"}})
    for index, one in enumerate(phrases):
        for other in phrases[index + 1 :]:
            if any(_related(a, b) for a in _content(one) for b in _content(other)):
                yield f"`{one}` and `{other}`"


def _content(phrase: str) -> set[str]:
    return {folded(word) for word in phrase.lower().split()} - LIGHT


def _related(one: str, other: str) -> bool:
    short, long = sorted((one, other), key=len)
    return one == other or (len(short) > 3 and (long.startswith(short) or long.endswith(short)))
