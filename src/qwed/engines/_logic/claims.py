"""Classification of claims as formulas, sentences or plain text.

Claims come from people and agents, who write `yes/no` and `2024-01-05` without meaning a division. So a text counts as
a formula only if it can mean nothing else. A text that is meant as a formula but cannot be parsed is unclear; the rest
is text, which the engine does not judge.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import pairwise
from typing import Any

from qwed.engines._logic.arguments import MAX_PREMISES
from qwed.engines._logic.notation import ParsedText, parse_text
from qwed.engines._logic.operators import OPERATORS
from qwed.engines._logic.sexpr import (
    MAX_CHARACTERS,
    Atom,
    ListNode,
    LogicLimitError,
    LogicRefusalError,
    NotFormalError,
    Tree,
    call,
    iter_atoms,
)
from qwed.engines._logic.tokens import LogicToken, TokenKind, tokenize
from qwed.engines._logic.trampoline import Step, run, run_all
from qwed.engines._logic.type_inference import TypeInference, is_declaration

_NOT_A_FORMULA = re.compile(r"\d[-/:.]\d+[-/:.]\d|\d:\d|(?<![\w.])0\d|\d\s*%(?!\s*[\w(])|~\s*\d")
"""Dates, times, versions, percentages, approximations and leading zeros; as formulas they would mean something else."""
_HEAD = re.compile(r"\s*\(\s*([^\s()]+)")
_OPERANDS = frozenset({TokenKind.NAME, TokenKind.NUMBER, TokenKind.STRING, TokenKind.CONSTANT, TokenKind.IN})
_ARITHMETIC = frozenset({"PLUS", "MINUS", "TIMES", "DIV", "MOD", "POW", "^"})
_SENTENCE = frozenset({"CLASS", "ADJECTIVE", "VERB", "INDIVIDUAL", "WEATHER"})
_NAMED = frozenset({"NAME", "PREDICATE", "STRING", "BARE"})
_LETTER = re.compile(r"[^\W\d_][\d_]*|\".\"")
"""Single letters, whose case is significant: `x` and `X` may differ, `Price` and `price` do not."""
_NO_STATEMENTS = ParsedText(())


class ClaimKind(StrEnum):
    """Kind of a claim."""

    FORMULA = "formula"
    SENTENCE = "sentence"
    UNCLEAR = "unclear"
    TEXT = "text"


@dataclass(frozen=True, slots=True)
class Claim:
    """One claim: its kind, its statement if it has one, and the error if it is unclear."""

    number: int
    kind: ClaimKind
    parsed: ParsedText = _NO_STATEMENTS
    message: str = ""

    @property
    def is_word(self) -> bool:
        """True if it is one name: a proposition, or any word at all."""
        return self.kind is ClaimKind.FORMULA and [type(tree) for tree in self.parsed.trees] == [Atom]


def parse_claims(query: str, parameters: Mapping[str, Any]) -> tuple[Claim, ...] | None:
    """Return the claims of a request, or None if it has none; raise LogicRefusalError if they are malformed."""
    items = parameters.get("claims")
    if items is None or query or "premises" in parameters or "conclusion" in parameters:
        return None
    if not isinstance(items, list | tuple) or not items or len(items) > MAX_PREMISES:
        raise LogicRefusalError("PARSE_ERROR", f"`claims` must be a list of 1 to {MAX_PREMISES} claims", 0)
    pairs = [_pair(item) for item in items]
    if sum(len(text) for text, _ in pairs) > MAX_CHARACTERS:
        raise LogicRefusalError("PARSE_ERROR", f"more than {MAX_CHARACTERS} characters in all", 0)
    return tuple(_claim(number, text, negated=negated) for number, (text, negated) in enumerate(pairs))


def _pair(item: Any) -> tuple[str, bool]:
    if isinstance(item, str):
        return item, False
    text, negated = (item.get("claim"), item.get("negated", False)) if isinstance(item, Mapping) else (None, None)
    if not isinstance(text, str) or not isinstance(negated, bool):
        raise LogicRefusalError("PARSE_ERROR", "a claim is a text, or an object of `claim` and `negated`", 0)
    return text, negated


def _claim(number: int, text: str, *, negated: bool) -> Claim:
    if _NOT_A_FORMULA.search(text):
        return Claim(number, ClaimKind.TEXT)
    try:
        parsed = parse_text(text)
        _require_one_truth(parsed)
    except NotFormalError:
        return Claim(number, ClaimKind.TEXT)
    except LogicRefusalError as error:
        unclear = isinstance(error, LogicLimitError) or _meant_as_formula(text)
        return Claim(number, ClaimKind.UNCLEAR if unclear else ClaimKind.TEXT, message=error.message)
    is_sentence = any(atom.kind in _SENTENCE for tree in parsed.trees for atom in iter_atoms(tree))
    trees = (*parsed.trees[:-1], call("NOT", parsed.trees[-1])) if negated else parsed.trees
    return Claim(number, ClaimKind.SENTENCE if is_sentence else ClaimKind.FORMULA, ParsedText(trees, parsed.english))


def _require_one_truth(parsed: ParsedText) -> None:
    if len(parsed.trees) == 1 and _is_constant(parsed.trees[0]):
        raise NotFormalError
    if sum(not is_declaration(tree) for tree in parsed.trees) != 1 or is_declaration(parsed.trees[-1]):
        raise LogicRefusalError("PARSE_ERROR", "one formula is needed, join several with AND", parsed.trees[-1].at)
    if not parsed.english:
        TypeInference().statements(parsed.trees)


def _is_constant(tree: Tree) -> bool:
    """Return True for `True` or `False` alone, which is an answer to a question, not a statement."""
    return isinstance(tree, Atom) and tree.text.lower() in ("true", "false")


def _meant_as_formula(text: str) -> bool:
    """Return True if a text that cannot be parsed has the form of a formula and of nothing else."""
    head = _HEAD.match(text)
    if head and head[1].upper() in OPERATORS:
        return True
    try:
        tokens = tokenize(text)
    except LogicRefusalError:
        return False
    compares = any(_compares(token) and not text[token.at].isalpha() for token in tokens)
    # Two adjacent words mean prose.
    return compares and not any({one.kind, other.kind} <= _OPERANDS for one, other in pairwise(tokens))


def _compares(token: LogicToken) -> bool:
    return token.kind is TokenKind.BINARY and token.text not in _ARITHMETIC


def fold_case(texts: Sequence[ParsedText]) -> list[ParsedText]:
    """Fold names that differ only in case.

    Not folded: single letters that one claim uses in both cases, as in `x < X`, and names used in different roles.
    """
    both_cases = {key for parsed in texts for key in _ambiguous_names([parsed], lambda atom: atom.text)}
    distinct = {key for key in both_cases if _LETTER.fullmatch(key)}
    distinct |= set(_ambiguous_names(texts, lambda atom: atom.kind == "PREDICATE"))
    return [ParsedText(tuple(run(_fold(tree, distinct)) for tree in parsed.trees), parsed.english) for parsed in texts]


def _ambiguous_names(texts: Sequence[ParsedText], key_of: Callable[[Atom], object]) -> Iterator[str]:
    seen: dict[str, object] = {}
    for tree in (tree for parsed in texts for tree in parsed.trees):
        for atom in iter_atoms(tree):
            if atom.kind in _NAMED and seen.setdefault(_fold_text(atom.text), key_of(atom)) != key_of(atom):
                yield _fold_text(atom.text)


def _fold_text(text: str) -> str:
    return " ".join(text.casefold().split())


def _fold(tree: Tree, distinct: set[str]) -> Step[Tree]:
    if isinstance(tree, Atom):
        same = tree.kind not in _NAMED or _fold_text(tree.text) in distinct
        return tree if same else Atom(tree.kind, _fold_text(tree.text), tree.at, tree.depth)
    items = yield run_all(_fold(item, distinct) for item in tree.items)
    return ListNode(tuple(items), tree.at, tree.depth)
