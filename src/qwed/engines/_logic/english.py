"""Parser for statements in controlled English: `if`, `only if`, `unless`, `either`, `or`, `and`, `not` around clauses.

`or` is inclusive, also after `either`, unless `but not both` follows; `P unless Q` is `P or Q`; `P only if Q` is
`if P then Q`. A statement whose connectives can be grouped in two ways is refused.
"""

import re
from collections.abc import Callable, Sequence

from qwed.engines._logic.english_clauses import Words, continues, not_in_grammar, parse_clause, split_at
from qwed.engines._logic.infix import parse_infix
from qwed.engines._logic.morphology import COMPARISONS, CONTRACTIONS, UNSUPPORTED_WORDS
from qwed.engines._logic.sexpr import Atom, LogicRefusalError, NotFormalError, Tree, call
from qwed.engines._logic.tokens import SIGN

MAX_WORDS = 200
_OPENERS = frozenset(
    {"if", "either", "neither", "both", "unless", "all", "every", "each", "any", "no", "some", "it", "there", "the"}
    | {"everything", "something", "nothing"}
)
_DENIALS = (
    "it is not the case that",
    "it is not true that",
    "it is false that",
)
_AFFIRMATIONS = ("it is the case that", "it is true that")
_WORD = re.compile(r"[^\W\d_][\w'-]*|-?[0-9](?:[\w.,%]*\w)?%?|[<>=!]=|,|\S")
_PLAIN = re.compile(r"[^\W\d_]\w*(?:-[^\W\d_]{2,})*|-?[0-9]+(?:\.[0-9]+)?")
_CONNECTIVE_PHRASES = {"if and only if": "iff", "just in case": "iff", "only if": "only-if", "but not both": "not-both"}
_CONDITIONALS = ("iff", "only-if", "unless", "implies", "if")
_CONNECTIVES = frozenset({*_CONDITIONALS, "and", "or", "but", "not", "then"})
_OPERATOR_OF: dict[str, Callable[[Tree, Tree], Tree]] = {
    "iff": lambda one, other: call("IFF", one, other),
    "only-if": lambda one, other: call("IMPLIES", one, other),
    "implies": lambda one, other: call("IMPLIES", one, other),
    "if": lambda one, other: call("IMPLIES", other, one),
    "unless": lambda one, other: call("OR", one, other),
}


def starts_sentence(text: str) -> bool:
    """Return True if the first word starts a sentence rather than a formula."""
    match = re.match(r"\s*([A-Za-z]+)(?=\s)", text)
    return bool(match and match[1].lower() in _OPENERS)


def parse_english(text: str) -> Tree:
    """Parse one sentence; raise NotFormalError if it is not in the grammar."""
    words = _words(text.strip().removesuffix(".").strip())
    if not words or len(words) > MAX_WORDS:
        raise NotFormalError
    low = [word.lower() for word in words]
    # `If any server is down` means some, `Any server is down` means all.
    if "any" in low[1:] or (low[0] == "any" and not _CONNECTIVES.isdisjoint(low)):
        raise NotFormalError("`any` can mean some or all, write `some` or `every`")
    reader = _StatementParser()
    tree = reader.statement(words)
    # `Alice or Bob is tall` must not be read as a proposition called `Alice`.
    if reader.bare and reader.sentences:
        raise NotFormalError(f"`{reader.bare[0][:40]}` is not a sentence, write each part with its own verb")
    return tree


def _words(text: str) -> list[str]:
    """Return the words, with each comparison and each connective phrase as one."""
    spaced = " ".join(piece for piece in _WORD.findall(text.replace("\u2019", "'")))
    for phrase, plain in CONTRACTIONS.items():
        spaced = re.sub(rf"\b{phrase}\b", plain, spaced, flags=re.IGNORECASE)
    for phrase, operator in COMPARISONS.items():
        spaced = re.sub(rf"\b(?<!no ){phrase}\b", operator, spaced, flags=re.IGNORECASE)
    for phrase, joint in _CONNECTIVE_PHRASES.items():
        spaced = re.sub(rf"\b{phrase}\b", joint, spaced, flags=re.IGNORECASE)
    return spaced.split()


def _position(words: Words, *targets: str) -> int | None:
    return next((index for index, word in enumerate(words) if word.lower() in targets), None)


class _StatementParser:
    """Parser of one statement; it records which clauses are bare names."""

    def __init__(self) -> None:
        self.bare: list[str] = []
        self.sentences = 0

    def statement(self, words: Words) -> Tree:
        """Parse all of `words` as one statement."""
        low = " ".join(words).lower()
        if (rest := _strip_opening(words, low, _DENIALS)) is not None:
            return call("NOT", self._single(rest))
        if (rest := _strip_opening(words, low, _AFFIRMATIONS)) is not None:
            return self._single(rest)
        first = words[0].lower() if words else ""
        if first in _LEADING_WORDS:
            return _LEADING_WORDS[first](self, words)
        joint = _position(words, *_CONDITIONALS)
        if joint is not None:
            return self._conditional_after(words, joint)
        return self._coordination(words)

    def _conditional(self, words: Words) -> Tree:
        then = _matching_then(words)
        if then is None:
            commas = [index for index, word in enumerate(words) if word == ","]
            if len(commas) != 1:
                raise not_in_grammar(words)
            then = commas[0]
        one, other = _without_final_comma(words[1:then]), words[then + 1 :]
        if other and other[0].lower() != "if" and _position(other, *_CONDITIONALS) is not None:
            raise not_in_grammar(words)
        return call("IMPLIES", self._side(one), self.statement(other))

    def _unless_first(self, words: Words) -> Tree:
        commas = [index for index, word in enumerate(words) if word == ","]
        if len(commas) != 1:
            raise not_in_grammar(words)
        return call("OR", self._side(words[1 : commas[0]]), self._side(words[commas[0] + 1 :]))

    def _conditional_after(self, words: Words, joint: int) -> Tree:
        one, other = words[:joint], words[joint + 1 :]
        # In `P and Q if R` the condition may apply to Q only, so each side must be a single clause.
        return _OPERATOR_OF[words[joint].lower()](self._single(_without_final_comma(one)), self._single(other))

    def _side(self, words: Words) -> Tree:
        """Parse one side of a conditional, which may not contain another conditional."""
        if _position(words, *_CONDITIONALS) is not None:
            raise not_in_grammar(words)
        return self.statement(words)

    def _either(self, words: Words) -> Tree:
        return self._coordination(words[1:], only="or")

    def _both(self, words: Words) -> Tree:
        return self._coordination(words[1:], only="and")

    def _neither(self, words: Words) -> Tree:
        at = _position(words, "nor")
        if at is None or _position(words[at + 1 :], "nor", "and", "or") is not None:
            raise not_in_grammar(words)
        return call("AND", call("NOT", self._single(words[1:at])), call("NOT", self._single(words[at + 1 :])))

    def _coordination(self, words: Words, only: str = "") -> Tree:
        """Parse clauses joined by one connective; a comma may stand for it in a list."""
        exclusive = bool(words) and words[-1] == "not-both"
        words = words[:-1] if exclusive else words
        used = {"and" if word.lower() == "but" else word.lower() for word in words} & {"and", "or"}
        if len(used) > 1 or (only and used != {only}) or (exclusive and used != {"or"}):
            raise not_in_grammar(words)
        if not used:
            return self._single(words)
        split = split_at(words, ("and", "or", "but", ","))
        if len(split) > 1 and all(continues(split[0], part) for part in split[1:]) and not exclusive:
            return self._sentence(words)
        parts = [self._single(part) for part in split]
        if exclusive and len(parts) != 2:
            raise not_in_grammar(words)
        return call("XOR" if exclusive else used.pop().upper(), *parts)

    def _negation(self, words: Words) -> Tree:
        if words[1:2] and words[1].lower() in ("all", "every"):
            return self._coordination(words)
        return call("NOT", self._single(words[1:]))

    def _single(self, words: Words) -> Tree:
        """Parse a clause, or a group whose end is marked."""
        first = words[0].lower() if words else ""
        if first in ("both", "either", "if"):
            return self.statement(words)
        if first == "not" and words[1:2] and words[1].lower() not in ("all", "every"):
            return call("NOT", self._single(words[1:]))
        if any(word.lower() in ("and", "or", "but", ",", *_CONDITIONALS) for word in words):
            raise not_in_grammar(words)
        return self._clause(words)

    def _clause(self, words: Words) -> Tree:
        if len(words) == 1 and words[0].isidentifier() and words[0].lower() not in UNSUPPORTED_WORDS:
            self.bare.append(words[0])
            return Atom("BARE", words[0], 0)
        if SIGN.search(" ".join(words)):
            return _symbolic(words)
        return self._sentence(words)

    def _sentence(self, words: Words) -> Tree:
        if not all(word == "," or _PLAIN.fullmatch(word) for word in words):
            raise not_in_grammar(words)
        self.sentences += 1
        return parse_clause(words)


def _symbolic(words: Words) -> Tree:
    try:
        return parse_infix(" ".join(words))
    except LogicRefusalError:
        raise not_in_grammar(words) from None


def _strip_opening(words: Words, low: str, openings: Sequence[str]) -> Words | None:
    opening = next((opening for opening in openings if low.startswith(f"{opening} ")), None)
    return None if opening is None else words[len(opening.split()) :]


def _matching_then(words: Words) -> int | None:
    """Return the index of the `then` of the first `if`, or None."""
    depth = 0
    for index, word in enumerate(words):
        depth += (word.lower() == "if") - (word.lower() == "then")
        if depth == 0:
            return index
    return None


def _without_final_comma(words: Words) -> Words:
    return words[:-1] if words and words[-1] == "," else words


_LEADING_WORDS: dict[str, Callable[[_StatementParser, Words], Tree]] = {
    "if": _StatementParser._conditional,
    "unless": _StatementParser._unless_first,
    "either": _StatementParser._either,
    "both": _StatementParser._both,
    "neither": _StatementParser._neither,
    "not": _StatementParser._negation,
}
