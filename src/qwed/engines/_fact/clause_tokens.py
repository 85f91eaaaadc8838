"""Normalised items of a clause: words as stems, names whole, numbers and dates as slots."""

import re
from collections.abc import Sequence
from typing import NamedTuple

from qwed.engines._fact.dates import DateSlot, date_at
from qwed.engines._fact.lexicon import (
    ARTICLES,
    COMPANY_FORMS,
    DROPPED,
    PHRASES,
    PREPOSITIONS,
    PRONOUNS,
    QUANTIFIERS,
    stem,
)
from qwed.engines._fact.numbers import Quantity, ordinal_of, quantity_at
from qwed.engines._fact.text import FactToken
from qwed.model.data_files import read_table

_PHRASES = {tuple(phrase.split()): words.split() for phrase, words in PHRASES.items()}
_MAX_PHRASE_WORDS = max(map(len, _PHRASES))
_PLAIN = frozenset(read_table(__file__, "clause_words.txt").split())
_PUNCTUATION = frozenset(
    ".,;:!?'\"()[]{}*_`-\u2013\u2014\u2018\u2019\u201c\u201d\u2026\u00ab\u00bb\u2022\u00b7\u00ae\u2122\u00a9"
)
"""Signs without meaning of their own."""
_NEVER_NAMES = ARTICLES | PREPOSITIONS | PRONOUNS | DROPPED | _PLAIN | frozenset(QUANTIFIERS)


class Item(NamedTuple):
    """One item of a clause; `stem` compares words, `text` compares names, `slot` holds a number or date."""

    stem: str
    text: str
    past: bool = False
    capital: bool = False
    upper: bool = False
    definite: bool = False
    indefinite: bool = False
    mixed: str = ""
    """Spelling of a word with inner capitals: `mW` is not `MW`."""
    slot: Quantity | DateSlot | None = None


def items_of(tokens: Sequence[FactToken], dropped: frozenset[str]) -> list[Item]:
    """Return the items of a clause in order, without the words in `dropped`."""
    tokens = [token for token in _replace_phrases(tokens) if token.text not in dropped]
    items: list[Item] = []
    at, article = 0, ""
    while at < len(tokens):
        item, taken = _item(tokens, at, items)
        if item is None and tokens[at].text in ARTICLES:
            article = tokens[at].text
        if item is not None:
            items.append(item._replace(definite=article == "the", indefinite=article in ("a", "an")))
            article = ""
        at += taken
    return items


def _replace_phrases(tokens: Sequence[FactToken]) -> list[FactToken]:
    replaced: list[FactToken] = []
    at = 0
    while at < len(tokens):
        length = min(_MAX_PHRASE_WORDS, len(tokens) - at)
        while length > 1 and tuple(token.text for token in tokens[at : at + length]) not in _PHRASES:
            length -= 1
        if length > 1:
            words = _PHRASES[tuple(token.text for token in tokens[at : at + length])]
            replaced.extend(tokens[at]._replace(text=word, written=_cased(word, tokens[at])) for word in words)
        else:
            replaced.append(tokens[at])
        at += length
    return replaced


def _cased(word: str, like: FactToken) -> str:
    if len(word) <= 3 and word not in _NEVER_NAMES - {"us"}:
        return word.upper()
    return word.capitalize() if like.capital and like.text not in _NEVER_NAMES else word


def _item(tokens: Sequence[FactToken], at: int, before: Sequence[Item]) -> tuple[Item | None, int]:
    token = tokens[at]
    if token.text == "may" and not token.capital:
        return _word(token), 1
    when = date_at(tokens, at)
    if when is not None:
        return Item("when", "", slot=when.slot), when.taken
    quantity = quantity_at(tokens, at)
    if quantity is not None:
        return Item("number", "", slot=quantity.slot), quantity.taken
    if token.kind == "sign":
        return (None if _is_silent_sign(tokens, at) else Item(token.text, token.text)), 1
    if token.text in ARTICLES and not _is_letter(tokens, at):
        return None, 1
    number = ordinal_of(token)
    if number is not None:
        return Item(f"ordinal {number}", ""), 1
    return _name(tokens, at, before)


def _is_letter(tokens: Sequence[FactToken], at: int) -> bool:
    """Return True if `a` is not an article: `Vitamin A`, `Room 5A`, `A$5`."""
    token = tokens[at]
    before = tokens[at - 1] if at else None
    after = tokens[at + 1] if at + 1 < len(tokens) else None
    behind = before is not None and before.kind == "number" and before.start + len(before.written) == token.start
    ahead = after is not None and after.kind != "word" and after.start == token.start + len(token.written)
    named = before is not None and token.written == "A"
    return behind or named or (ahead and after is not None and after.text not in _PUNCTUATION)


def _is_silent_sign(tokens: Sequence[FactToken], at: int) -> bool:
    """Return True for punctuation, but not for a minus before an amount."""
    token = tokens[at]
    if token.text not in _PUNCTUATION:
        return False
    after = tokens[at + 1] if at + 1 < len(tokens) else None
    leads = after is not None and after.kind == "sign" and after.start == token.start + 1
    return not (token.text in "-\u2013\u2212" and leads and after is not None and after.text not in _PUNCTUATION)


def _name(tokens: Sequence[FactToken], at: int, before: Sequence[Item]) -> tuple[Item | None, int]:
    if tokens[at].text in COMPANY_FORMS and before and before[-1].capital:
        return None, 1
    end = at
    while end < len(tokens) and _is_name(tokens[end]) and (end == at or tokens[end].text not in COMPANY_FORMS):
        end += 1
    if end - at < 2:
        return _word(tokens[at]), 1
    text = " ".join(token.text for token in tokens[at:end])
    return Item(text, text, capital=True), end - at


_DIGIT_KINDS = frozenset({"number", "clock", "slashed", "iso", "decade"})
"""Kinds of tokens that have no endings: as labels they equal only the same spelling."""


def _is_name(token: FactToken) -> bool:
    return token.capital and (token.text not in _NEVER_NAMES or (token.written.isupper() and len(token.written) > 1))


def _word(token: FactToken) -> Item:
    if token.kind in _DIGIT_KINDS:
        return Item(token.text, token.text)
    sense = stem(token.text)
    upper = token.written.isupper() and len(token.written) > 1
    return Item(sense.stem, token.text, sense.past, _is_name(token), upper, mixed=_mixed_case(token.written))


def _mixed_case(written: str) -> str:
    """Return the word if it has a capital inside and is not all capitals."""
    word = re.split("['\u2019]", written)[0]
    parts = [part for part in word.split("-") if part]
    return "" if all(part.islower() or part.isupper() or part == part.capitalize() for part in parts) else word
