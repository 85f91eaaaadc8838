"""What a claim says and whether it denies it, however that is written: in capitals, with signs, with two negations.

Only what certainly denies the whole claim is taken off its front: `not a or b` denies `a` alone, and `~5 users` denies
nothing.
"""

import re
import unicodedata
from functools import lru_cache
from itertools import accumulate
from typing import NamedTuple

from qwed.words.normal import normalize
from qwed_a2a.guards._logic.assertions import Assertion, Unverifiable

# ruff: noqa: RUF001  # the signs are the notation
_KEPT = ("<super>", "<sub>", "<fraction>", "<circle>", "<square>")
"""Forms that mean something: a thousand is not `10` with a three behind it."""
_QUOTES = {'"': '"', "'": "'", "“": "”", "‘": "’", "«": "»", "`": "`"}
_AT_ENDS = " .,;:?…"
_SIGNS = re.compile(r"[=<>≤≥≠⩽⩾]")
_EXCLAIMED = re.compile(r"(?<=[^\W\d_]{2})!+$")
_DENIED = re.compile(
    r"it(?:\s+is|'s)\s+(?:not\s+(?:the\s+case|true|so)|untrue|false|never\s+(?:the\s+case|true))\s+that\s+"
    r"|it\s+isn't\s+(?:the\s+case|true|so)\s+that\s+",
    re.IGNORECASE,
)
_AFFIRMED = re.compile(r"it(?:\s+is|'s)\s+(?:the\s+case|true|so)\s+that\s+", re.IGNORECASE)
_NOT = re.compile(r"(?:not|never)\b(?![-'])\s*|no\s+(?!\d)|[!~](?![=\d\s]*\d|=)\s*|¬\s*", re.IGNORECASE)
_JOINED = re.compile(
    r"\b(?:and|or|nor|but|if|then|implies|iff|xor|unless|because|since|when|while|although|though|whereas|only)\b"
    r"|[,;:&|∧∨⊕⊻→↔⇒⇔⊃≡⟶⟹⟷⟺]|->|=>|<-\s|<=>|/\\|\\/",
    re.IGNORECASE,
)
_FORMAL = re.compile(r"[&|∧∨⊕⊻→↔⇒⇔⊃≡⟶⟹⟷⟺∀∃]|->|\b(?:implies|iff|xor|forall|exists)\b", re.IGNORECASE)
_OF_SOME = re.compile(
    r"\b(?:some|any|many|most|several|few|every|each|all|no|none|nobody|nothing|half|part|parts|an?|one|either|neither|may"
    r"|might|could|sometimes|often|partly|not\s+(?:only|just|yet|all|every))\b",
    re.IGNORECASE,
)
_TRUTH = re.compile(r"\s+is\s+(?P<not>not\s+)?(?P<value>true|false)\Z", re.IGNORECASE)
_SHORT = re.compile(r"\b(?:cannot|(?:is|are|was|were|has|have|had|wo|ca|would|should|must|do)n't)\b", re.IGNORECASE)
_LONG = {"cannot": "can not", "can't": "can not", "won't": "will not"}
_AT_VERB = re.compile(
    r"\b(?:(?P<verb>is|are|was|were|has|have|had|will|can|would|shall|should|must)\s+not\b|do\s+not\b)", re.IGNORECASE
)
_AROUND_SIGNS = re.compile(r" (?=[^\w\s])|(?<=[^\w\s]) ")
_LETTER = re.compile(r"\b[^\W\d_][\d_]*\b")
_MOST_NEGATIONS = 16
_MOST_QUOTES = 8


class Proposition(NamedTuple):
    """A claim without its negations."""

    text: str
    """As it is written, in plain characters."""
    core: str
    """What is said, negations apart, in the case it is written in."""
    formula: str
    """The core as the logic engine would read it: an S-expression keeps its parentheses."""
    key: str
    """The same for every spelling of it."""
    negative: bool
    """Whether the core is denied, by the claim itself or by whoever sends it, not by both."""
    negated: bool
    """Whether the whole text is denied by whoever sends it."""
    key_negative: bool
    """Whether what the key says is denied: it has no negation inside either."""


def proposition(assertion: Assertion) -> Proposition:
    """What an assertion says, and whether it denies it."""
    text = plain(assertion.claim)
    core, denied, grouped = _without_negations(text)
    formula = f"({core})" if grouped and not core.isidentifier() else core
    said, turned = _within(core)
    negative = denied != assertion.negated
    return Proposition(text, core, formula, _key(said), negative, assertion.negated, negative != turned)


def plain(claim: str) -> str:
    """In plain characters: no invisible ones, one width, single blanks, and nothing around it."""
    if not claim.isascii():
        claim = normalize("NFC", "".join(map(_plain_character, claim)))
    text = " ".join(claim.split())
    bare = _unwrapped(text)
    return bare or text


@lru_cache(maxsize=4096)
def _plain_character(character: str) -> str:
    if unicodedata.category(character) == "Cf":
        return ""
    if unicodedata.decomposition(character).startswith(_KEPT):
        return character
    return normalize("NFKC", character).replace("’", "'")


def _unwrapped(text: str) -> str:
    """Without the punctuation at its ends, and without quotes around the whole of it."""
    for _ in range(_MOST_QUOTES):
        stripped = text.strip(_AT_ENDS)
        if not _SIGNS.search(stripped):
            stripped = _EXCLAIMED.sub("", stripped)
        closing = _QUOTES.get(stripped[:1])
        if closing and len(stripped) > 2 and stripped.endswith(closing) and closing not in stripped[1:-1]:
            stripped = stripped[1:-1]
        if stripped == text:
            break
        text = stripped
    return text


def _without_negations(text: str) -> tuple[str, bool, bool]:
    """What is said, whether it is denied, and whether it stood in parentheses."""
    core, denied, grouped = text, False, False
    single = not _JOINED.search(text)
    for _ in range(_MOST_NEGATIONS):
        found = _front(core, single=single)
        if found is None:
            return core, denied, grouped
        grouped = core.startswith("(")
        core, denied = found[0], denied != found[1]
    raise Unverifiable(f"has more than {_MOST_NEGATIONS} negations, write what it says without them")


def _front(text: str, *, single: bool) -> tuple[str, bool] | None:
    """What is left of a claim without what stands in front of it, and whether that denied it."""
    if bare := _without_parentheses(text):
        return bare, False
    if affirmed := _AFFIRMED.match(text):
        return _rest(text, affirmed, flips=False)
    if denied := _DENIED.match(text):
        return _rest(text, denied, flips=True)
    found = _NOT.match(text)
    if found is None:
        return None
    # Of several statements a word in front denies the first alone.
    rest = text[found.end() :].strip()
    whole = single or _without_parentheses(rest) or not _JOINED.search(rest)
    return _rest(text, found, flips=True) if whole else None


def _rest(text: str, front: re.Match[str], *, flips: bool) -> tuple[str, bool] | None:
    rest = text[front.end() :].strip()
    return (rest, flips) if rest else None


def _without_parentheses(text: str) -> str:
    """What is in the parentheses around the whole text, all of them; nothing where there are none."""
    around = min(len(text) - len(text.lstrip("(")), len(text) - len(text.rstrip(")")))
    if not around:
        return ""
    inner = text[around:-around]
    # Inside, what closes more than was opened there belongs to what stands in front.
    depths = accumulate((character == "(") - (character == ")") for character in inner)
    around += min(0, min(depths, default=0))
    return text[around:-around].strip() if around > 0 else ""


def _within(core: str) -> tuple[str, bool]:
    """A sentence without the negation at its verb, and whether there was one; of some things both can be true."""
    if _JOINED.search(core) or _OF_SOME.search(core):
        return core, False
    truth = _TRUTH.search(core)
    said = core[: truth.start()] if truth else core
    turned = truth is not None and bool(truth["not"]) == (truth["value"].lower() == "true")
    spelt = _SHORT.sub(lambda short: _LONG.get(short[0].lower(), short[0][:-3] + " not"), said)
    bare, count = _AT_VERB.subn(lambda verb: verb["verb"] or "", spelt)
    return (" ".join(bare.split()), not turned) if count == 1 else (said, turned)


def _key(core: str) -> str:
    spaced = _AROUND_SIGNS.sub("", core)
    return spaced if names_apart(core) else spaced.casefold()


def is_formal(said: Proposition) -> bool:
    """Whether it is one name, stands in parentheses, or has signs that compare or join."""
    if said.core.isidentifier() or said.formula != said.core:
        return True
    return bool(_SIGNS.search(said.core) or _FORMAL.search(said.core))


def names_apart(text: str) -> set[str]:
    """Letters that a formula has in both cases, as `x < X` has: longer names are one, however they are written."""
    if not _SIGNS.search(text):
        return set()
    folded = [name.casefold() for name in set(_LETTER.findall(text))]
    return {name for name in folded if folded.count(name) > 1}
