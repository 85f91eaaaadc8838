"""Claims that somebody makes side by side: which of them are formulas, which are sentences, which are neither.

Claims come from people and agents, who write `yes/no` and `2024-01-05` and mean no division by it. So a text counts as
a formula only where nothing else can be meant; one that was meant as a formula and cannot be read is unclear, and the
rest is text, of which nothing is said here.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import pairwise
from typing import Any

from qwed.engines._logic.arguments import MAX_PREMISES
from qwed.engines._logic.elaborate import Elaborator, is_declaration
from qwed.engines._logic.operators import OPERATORS
from qwed.engines._logic.reading import Reading, read
from qwed.engines._logic.syntax import MAX_CHARACTERS, Atom, Beyond, Form, NotFormal, Refusal, Tree, atoms_of, call
from qwed.engines._logic.tokens import Kind, Token, tokens_of
from qwed.engines._logic.walk import Step, each, walk

_OTHERWISE = re.compile(r"\d[-/:.]\d+[-/:.]\d|\d:\d|(?<![\w.])0\d|\d\s*%(?!\s*[\w(])|~\s*\d")
"""Dates, times, versions, percentages, about so many, a zero in front: as formulas they would say something else."""
_HEAD = re.compile(r"\s*\(\s*([^\s()]+)")
_OPERANDS = frozenset({Kind.NAME, Kind.NUMBER, Kind.STRING, Kind.CONSTANT, Kind.IN})
_ARITHMETIC = frozenset({"PLUS", "MINUS", "TIMES", "DIV", "MOD", "POW", "^"})
_SENTENCE = frozenset({"CLASS", "QUALITY", "DEED", "INDIVIDUAL", "SAYING"})
_NAMED = frozenset({"NAME", "PREDICATE", "STRING", "BARE"})


_LETTER = re.compile(r"[^\W\d_][\d_]*|\".\"")
"""Mathematicians tell `x` from `X`; nobody tells `Price` from `price`."""
_NOTHING = Reading(())


class Reads(StrEnum):
    """What a claim is to the solver."""

    FORMULA = "formula"
    SENTENCE = "sentence"
    UNCLEAR = "unclear"
    TEXT = "text"


@dataclass(frozen=True, slots=True)
class Claim:
    """One claim: how it reads, its statement where it has one, and what is wrong where it is unclear."""

    number: int
    reads: Reads
    reading: Reading = _NOTHING
    message: str = ""

    @property
    def is_word(self) -> bool:
        """Whether it is one name: a proposition, or any word at all."""
        return self.reads is Reads.FORMULA and [type(tree) for tree in self.reading.trees] == [Atom]


def claims_of(query: str, parameters: Mapping[str, Any]) -> tuple[Claim, ...] | None:
    """The claims that are asked about, or None where the question is another; Refusal where they have no shape."""
    given = parameters.get("claims")
    if given is None or query or "premises" in parameters or "conclusion" in parameters:
        return None
    if not isinstance(given, list | tuple) or not given or len(given) > MAX_PREMISES:
        raise Refusal("PARSE_ERROR", f"`claims` must be a list of 1 to {MAX_PREMISES} claims", 0)
    pairs = [_pair(each_) for each_ in given]
    if sum(len(text) for text, _ in pairs) > MAX_CHARACTERS:
        raise Refusal("PARSE_ERROR", f"more than {MAX_CHARACTERS} characters in all", 0)
    return tuple(_claim(number, text, negated=negated) for number, (text, negated) in enumerate(pairs))


def _pair(given: Any) -> tuple[str, bool]:
    if isinstance(given, str):
        return given, False
    text, negated = (given.get("claim"), given.get("negated", False)) if isinstance(given, Mapping) else (None, None)
    if not isinstance(text, str) or not isinstance(negated, bool):
        raise Refusal("PARSE_ERROR", "a claim is a text, or an object of `claim` and `negated`", 0)
    return text, negated


def _claim(number: int, text: str, *, negated: bool) -> Claim:
    if _OTHERWISE.search(text):
        return Claim(number, Reads.TEXT)
    try:
        reading = read(text)
        _require_one_truth(reading)
    except NotFormal:
        return Claim(number, Reads.TEXT)
    except Refusal as wrong:
        unclear = isinstance(wrong, Beyond) or _meant_as_formula(text)
        return Claim(number, Reads.UNCLEAR if unclear else Reads.TEXT, message=wrong.message)
    is_sentence = any(atom.kind in _SENTENCE for tree in reading.trees for atom in atoms_of(tree))
    trees = (*reading.trees[:-1], call("NOT", reading.trees[-1])) if negated else reading.trees
    return Claim(number, Reads.SENTENCE if is_sentence else Reads.FORMULA, Reading(trees, reading.english))


def _require_one_truth(reading: Reading) -> None:
    if len(reading.trees) == 1 and _is_constant(reading.trees[0]):
        raise NotFormal
    if sum(not is_declaration(tree) for tree in reading.trees) != 1 or is_declaration(reading.trees[-1]):
        raise Refusal("PARSE_ERROR", "one formula is needed, join several with AND", reading.trees[-1].at)
    if not reading.english:
        Elaborator().statements(reading.trees)


def _is_constant(tree: Tree) -> bool:
    """`False` alone is somebody's answer to a question, not a contradiction."""
    return isinstance(tree, Atom) and tree.text.lower() in ("true", "false")


def _meant_as_formula(text: str) -> bool:
    """Whether a text that cannot be read has the shape of a formula and of nothing else."""
    head = _HEAD.match(text)
    if head and head[1].upper() in OPERATORS:
        return True
    try:
        tokens = tokens_of(text)
    except Refusal:
        return False
    compares = any(_compares(token) and not text[token.at].isalpha() for token in tokens)
    # Two words side by side are prose.
    return compares and not any({one.kind, other.kind} <= _OPERANDS for one, other in pairwise(tokens))


def _compares(token: Token) -> bool:
    return token.kind is Kind.BINARY and token.text not in _ARITHMETIC


def without_case(readings: Sequence[Reading]) -> list[Reading]:
    """Names that differ in case only as one, unless one claim has both letters, as `x < X` has, or they take roles."""
    told = {key for reading in readings for key in _told_apart([reading], lambda atom: atom.text)}
    apart = {key for key in told if _LETTER.fullmatch(key)}
    apart |= set(_told_apart(readings, lambda atom: atom.kind == "PREDICATE"))
    return [
        Reading(tuple(walk(_folded(tree, apart)) for tree in reading.trees), reading.english) for reading in readings
    ]


def _told_apart(readings: Sequence[Reading], by: Callable[[Atom], object]) -> Iterator[str]:
    found: dict[str, object] = {}
    for tree in (tree for reading in readings for tree in reading.trees):
        for atom in atoms_of(tree):
            if atom.kind in _NAMED and found.setdefault(_plain(atom.text), by(atom)) != by(atom):
                yield _plain(atom.text)


def _plain(text: str) -> str:
    return " ".join(text.casefold().split())


def _folded(tree: Tree, apart: set[str]) -> Step[Tree]:
    if isinstance(tree, Atom):
        same = tree.kind not in _NAMED or _plain(tree.text) in apart
        return tree if same else Atom(tree.kind, _plain(tree.text), tree.at, tree.depth)
    items = yield each(_folded(item, apart) for item in tree.items)
    return Form(tuple(items), tree.at, tree.depth)
