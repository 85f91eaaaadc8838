"""The fact engine's items: the words of one clause without its form: names whole, numbers and dates as slots."""

import re
from collections.abc import Sequence
from typing import NamedTuple

from qwed.engines._fact.dates import When, when_at
from qwed.engines._fact.numbers import Quantity, ordinal_of, quantity_at
from qwed.engines._fact.text import Token
from qwed.engines._fact.words import (
    ARTICLES,
    COMPANY_FORMS,
    DROPPED,
    PHRASES,
    PREPOSITIONS,
    PRONOUNS,
    QUANTIFIERS,
    stem,
)

_PHRASES = {tuple(phrase.split()): words.split() for phrase, words in PHRASES.items()}
_LONGEST = max(map(len, _PHRASES))
_PLAIN = frozenset(
    [
        "and",
        "or",
        "but",
        "is",
        "are",
        "was",
        "were",
        "be",
        "been",
        "has",
        "have",
        "had",
        "do",
        "does",
        "did",
        "not",
        "there",
        "if",
        "when",
        "while",
        "that",
        "no",
    ]
)
_PUNCTUATION = frozenset(
    ".,;:!?'\"()[]{}*_`-\u2013\u2014\u2018\u2019\u201c\u201d\u2026\u00ab\u00bb\u2022\u00b7\u00ae\u2122\u00a9"
)
"""Signs that say nothing by themselves; every other one does."""
_NEVER_NAMES = ARTICLES | PREPOSITIONS | PRONOUNS | DROPPED | _PLAIN | frozenset(QUANTIFIERS)


class Item(NamedTuple):
    """One thing a clause says; `stem` compares words, `text` names, `slot` numbers and dates."""

    stem: str
    text: str
    past: bool = False
    capital: bool = False
    upper: bool = False
    definite: bool = False
    indefinite: bool = False
    mixed: str = ""
    """How it is written where capitals stand inside: `mW` is not `MW`."""
    slot: Quantity | When | None = None


def items_of(tokens: Sequence[Token], dropped: frozenset[str]) -> list[Item]:
    """The items of a clause, in order, without the words to be dropped."""
    tokens = [token for token in _folded(tokens) if token.text not in dropped]
    found: list[Item] = []
    at, article = 0, ""
    while at < len(tokens):
        item, taken = _item(tokens, at, found)
        if item is None and tokens[at].text in ARTICLES:
            article = tokens[at].text
        if item is not None:
            found.append(item._replace(definite=article == "the", indefinite=article in ("a", "an")))
            article = ""
        at += taken
    return found


def _folded(tokens: Sequence[Token]) -> list[Token]:
    found: list[Token] = []
    at = 0
    while at < len(tokens):
        length = min(_LONGEST, len(tokens) - at)
        while length > 1 and tuple(token.text for token in tokens[at : at + length]) not in _PHRASES:
            length -= 1
        if length > 1:
            words = _PHRASES[tuple(token.text for token in tokens[at : at + length])]
            found.extend(tokens[at]._replace(text=word, written=_cased(word, tokens[at])) for word in words)
        else:
            found.append(tokens[at])
        at += length
    return found


def _cased(word: str, like: Token) -> str:
    if len(word) <= 3 and word not in _NEVER_NAMES - {"us"}:
        return word.upper()
    return word.capitalize() if like.capital and like.text not in _NEVER_NAMES else word


def _item(tokens: Sequence[Token], at: int, before: Sequence[Item]) -> tuple[Item | None, int]:
    token = tokens[at]
    if token.text == "may" and not token.capital:
        return _word(token), 1
    when = when_at(tokens, at)
    if when is not None:
        return Item("when", "", slot=when.slot), when.taken
    quantity = quantity_at(tokens, at)
    if quantity is not None:
        return Item("number", "", slot=quantity.slot), quantity.taken
    if token.kind == "sign":
        return (None if _silent(tokens, at) else Item(token.text, token.text)), 1
    if token.text in ARTICLES and not _is_letter(tokens, at):
        return None, 1
    number = ordinal_of(token)
    if number is not None:
        return Item(f"ordinal {number}", ""), 1
    return _name(tokens, at, before)


def _is_letter(tokens: Sequence[Token], at: int) -> bool:
    """Whether an `a` is no article: `Vitamin A`, `Room 5A`, `A$5`."""
    token = tokens[at]
    before = tokens[at - 1] if at else None
    after = tokens[at + 1] if at + 1 < len(tokens) else None
    behind = before is not None and before.kind == "number" and before.start + len(before.written) == token.start
    ahead = after is not None and after.kind != "word" and after.start == token.start + len(token.written)
    named = before is not None and token.written == "A"
    return behind or named or (ahead and after is not None and after.text not in _PUNCTUATION)


def _silent(tokens: Sequence[Token], at: int) -> bool:
    """Whether a sign says nothing: punctuation, but not a minus before an amount."""
    token = tokens[at]
    if token.text not in _PUNCTUATION:
        return False
    after = tokens[at + 1] if at + 1 < len(tokens) else None
    leads = after is not None and after.kind == "sign" and after.start == token.start + 1
    return not (token.text in "-\u2013\u2212" and leads and after is not None and after.text not in _PUNCTUATION)


def _name(tokens: Sequence[Token], at: int, before: Sequence[Item]) -> tuple[Item | None, int]:
    if tokens[at].text in COMPANY_FORMS and before and before[-1].capital:
        return None, 1
    end = at
    while end < len(tokens) and _names(tokens[end]) and (end == at or tokens[end].text not in COMPANY_FORMS):
        end += 1
    if end - at < 2:
        return _word(tokens[at]), 1
    text = " ".join(token.text for token in tokens[at:end])
    return Item(text, text, capital=True), end - at


def _names(token: Token) -> bool:
    return token.capital and (token.text not in _NEVER_NAMES or (token.written.isupper() and len(token.written) > 1))


def _word(token: Token) -> Item:
    sense = stem(token.text)
    upper = token.written.isupper() and len(token.written) > 1
    return Item(sense.stem, token.text, sense.past, _names(token), upper, mixed=_mixed(token.written))


def _mixed(written: str) -> str:
    """The word where it has a capital inside and is not all capitals."""
    word = re.split("['\u2019]", written)[0]
    parts = [part for part in word.split("-") if part]
    return "" if all(part.islower() or part.isupper() or part == part.capitalize() for part in parts) else word
