"""Normal form of a claim: its text without negations, and its sign, in any spelling.

Only a negation that certainly covers the whole claim is removed: `not a or b` negates `a` alone, and `~5 users` negates
nothing.
"""

import re
import unicodedata
from functools import lru_cache
from itertools import accumulate
from typing import NamedTuple

from qwed.model.unicode_normal import normalize
from qwed_a2a.guards._logic.assertions import Assertion, AssertionFormatError

# ruff: noqa: RUF001  # the signs are the notation
_KEPT_DECOMPOSITIONS = ("<super>", "<sub>", "<fraction>", "<circle>", "<square>")
"""Character forms that carry meaning: `10³` is not `103`."""
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
    """Claim without its negations."""

    text: str
    """The claim in plain characters."""
    core: str
    """The claim without negations, in its original case."""
    formula: str
    """The core in the notation of the logic engine: an S-expression keeps its parentheses."""
    key: str
    """Comparison key, equal for every spelling."""
    negative: bool
    """True if the core is negated, by the claim itself or by its `negated` flag, but not by both."""
    negated: bool
    """True if the `negated` flag is set."""
    key_negative: bool
    """True if the statement of the key is negated; the key has no inner negation."""


def parse_proposition(assertion: Assertion) -> Proposition:
    """Return the proposition of an assertion."""
    text = to_plain_text(assertion.claim)
    core, denied, grouped = _strip_negations(text)
    formula = f"({core})" if grouped and not core.isidentifier() else core
    statement, inner_negation = _strip_inner_negation(core)
    negative = denied != assertion.negated
    return Proposition(
        text, core, formula, _comparison_key(statement), negative, assertion.negated, negative != inner_negation
    )


def to_plain_text(claim: str) -> str:
    """Return the claim in plain characters: no invisible ones, one width, single blanks, no surrounding punctuation."""
    if not claim.isascii():
        claim = normalize("NFC", "".join(map(_plain_character, claim)))
    text = " ".join(claim.split())
    bare = _unwrap(text)
    return bare or text


@lru_cache(maxsize=4096)
def _plain_character(character: str) -> str:
    if unicodedata.category(character) == "Cf":
        return ""
    if unicodedata.decomposition(character).startswith(_KEPT_DECOMPOSITIONS):
        return character
    return normalize("NFKC", character).replace("’", "'")


def _unwrap(text: str) -> str:
    """Return the text without punctuation at its ends and without quotes around all of it."""
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


def _strip_negations(text: str) -> tuple[str, bool, bool]:
    """Return the core, True if it is negated, and True if it was in parentheses."""
    core, denied, grouped = text, False, False
    single = not _JOINED.search(text)
    for _ in range(_MOST_NEGATIONS):
        stripped = _strip_prefix(core, single=single)
        if stripped is None:
            return core, denied, grouped
        grouped = core.startswith("(")
        core, denied = stripped[0], denied != stripped[1]
    raise AssertionFormatError(f"has more than {_MOST_NEGATIONS} negations, write what it says without them")


def _strip_prefix(text: str, *, single: bool) -> tuple[str, bool] | None:
    """Return the claim without its first prefix or parentheses, and True if that negated it; None if there is none."""
    if bare := _strip_parentheses(text):
        return bare, False
    if affirmed := _AFFIRMED.match(text):
        return _rest(text, affirmed, flips=False)
    if denied := _DENIED.match(text):
        return _rest(text, denied, flips=True)
    negation = _NOT.match(text)
    if negation is None:
        return None
    # Before several statements a negation covers only the first.
    rest = text[negation.end() :].strip()
    whole = single or _strip_parentheses(rest) or not _JOINED.search(rest)
    return _rest(text, negation, flips=True) if whole else None


def _rest(text: str, front: re.Match[str], *, flips: bool) -> tuple[str, bool] | None:
    rest = text[front.end() :].strip()
    return (rest, flips) if rest else None


def _strip_parentheses(text: str) -> str:
    """Return the content of the parentheses around the whole text, or an empty string."""
    around = min(len(text) - len(text.lstrip("(")), len(text) - len(text.rstrip(")")))
    if not around:
        return ""
    inner = text[around:-around]
    # A closing parenthesis without an opening one inside belongs to the text in front.
    depths = accumulate((character == "(") - (character == ")") for character in inner)
    around += min(0, min(depths, default=0))
    return text[around:-around].strip() if around > 0 else ""


def _strip_inner_negation(core: str) -> tuple[str, bool]:
    """Return a sentence without the negation at its verb, and True if there was one; for `some` both may be true."""
    if _JOINED.search(core) or _OF_SOME.search(core):
        return core, False
    truth = _TRUTH.search(core)
    statement = core[: truth.start()] if truth else core
    negated = truth is not None and bool(truth["not"]) == (truth["value"].lower() == "true")
    spelt = _SHORT.sub(lambda short: _LONG.get(short[0].lower(), short[0][:-3] + " not"), statement)
    bare, count = _AT_VERB.subn(lambda verb: verb["verb"] or "", spelt)
    return (" ".join(bare.split()), not negated) if count == 1 else (statement, negated)


def _comparison_key(core: str) -> str:
    spaced = _AROUND_SIGNS.sub("", core)
    return spaced if case_sensitive_names(core) else spaced.casefold()


def is_formal(proposition: Proposition) -> bool:
    """Return True if it is one name, is in parentheses, or has signs that compare or join."""
    if proposition.core.isidentifier() or proposition.formula != proposition.core:
        return True
    return bool(_SIGNS.search(proposition.core) or _FORMAL.search(proposition.core))


def case_sensitive_names(text: str) -> set[str]:
    """Return the letters that a formula has in both cases, as in `x < X`; longer names are case-insensitive."""
    if not _SIGNS.search(text):
        return set()
    folded = [name.casefold() for name in set(_LETTER.findall(text))]
    return {name for name in folded if folded.count(name) > 1}
