"""Which queries are one query: capitals and spaces are levelled only where they cannot carry a meaning.

A false claim answered from the entry of a true one would be a lie; an entry that is not found costs a verification.
What is not recognised is therefore kept as it stands. The shape is part of the normal form, so that two queries are
one only where the same rule made them so.
"""

import re
from collections.abc import Callable, Iterable
from enum import StrEnum
from typing import NamedTuple

from qwed_sdk.cache.english import (
    CODE_WORDS,
    FIRST_WORDS_OF_CODE,
    JOINING_WORDS,
    LITTLE_WORDS,
    MARKERS,
    OPENERS,
    SQL_VERBS,
    SQL_WORDS,
    VERBS,
)

_SPACE = " \t\r\n"
_QUOTES = "'\"`"
_PIECE = re.compile(r"""([\w \t\r\n.,?!:;()+*/^=<>%-]+)|'[^'"`\\]*'|"[^'"`\\]*"|`[^'"`\\]*`""")
_APOSTROPHE = re.compile(r"(?<=[A-Za-z][A-Za-z])'(?=(?:s|t|re|ve|ll|d|m)(?![\w']))", re.IGNORECASE)
_LETTER_APOSTROPHE = "\u02bc"
_WORD = re.compile(r"\w+")
_PAIR = re.compile(rf'\b(\w++)[{_SPACE}]++(?=(\w++|"))')
_RUN = re.compile(f"[{_SPACE}]+")
# A point inside a word, as in `os.remove`, belongs to no sentence.
_SIGN = re.compile(r"[:;()+*/^=<>%-]|[.,](?=\w)")
_COMMENT = re.compile(r"--|//|/\*")
_LAST_WORD = re.compile(r"\w+\Z")
_LONGEST_LITTLE_WORD = max(map(len, LITTLE_WORDS)) + 1
# Alone in its line it ends what goes before it; in a line with others it is a name or a sign.
_SEPARATOR = re.compile(r"^[ \t]*(?:go|/)[ \t]*$", re.IGNORECASE | re.MULTILINE)
_LINE_END = re.compile(r"[\r\n]")
_STATEMENT = re.compile(
    r"select\s+[\d\"(*]|select\s.*\bfrom\b|insert\s+into\s|update\s+[\w.]+\s+set\s|delete\s+from\s"
    r"|with\s.*\bas\s*\(\s*select\s",
    re.IGNORECASE | re.DOTALL,
)
_BEFORE_A_NAME = frozenset(".:%")
_FEWEST_WORDS = 3


class Shape(StrEnum):
    """What a query looks like, which says what is levelled in it."""

    EXACT = "exact"
    PLAIN = "plain"
    STATEMENT = "statement"
    SENTENCE = "sentence"


class _Text(NamedTuple):
    """A query cut into pieces, open and quoted by turns; quoted ones stay as they are."""

    pieces: tuple[str, ...]
    open: str
    words: tuple[str, ...]

    @property
    def first(self) -> str:
        return _small(self.words[0]) if self.words else ""

    @property
    def is_formal(self) -> bool:
        """Whether it has a number, a sign of a formula or a name such as `user_id`."""
        return self.has_signs or not all(map(str.isalpha, self.words))

    @property
    def is_spoken(self) -> bool:
        """Whether it has apostrophes, which are quotes to whoever reads it as anything but a sentence."""
        return _LETTER_APOSTROPHE in self.open

    @property
    def has_signs(self) -> bool:
        return _SIGN.search(self.open) is not None

    @property
    def is_risky(self) -> bool:
        """Whether spaces may belong to a value (`name: a  b`), to markup, or to a pattern between two slashes."""
        return any(sign in self.open for sign in (":", "</", "/>")) or self.open.count("/") > 1


_Spelling = Callable[[str, str], str]
"""How a word is spelled, given the character before it."""


def normal(query: str) -> str:
    """The normal form: equal for two queries only where what differs between them cannot carry a meaning."""
    text = _cut(query)
    if text is None:
        return exact(query)
    if _is_statement(text):
        return _form(Shape.STATEMENT, _levelled(text, _one_space, _keyword))
    if _is_sentence(text) and not _collides(text):
        space = _space_at_little_words if text.has_signs else _one_space
        return _form(Shape.SENTENCE, _levelled(text, space, _little_word if text.is_formal else _lowered))
    if _is_plain(text):
        return _form(Shape.PLAIN, _levelled(text, _space_at_signs if text.has_signs else _one_space, _as_it_is))
    return exact(query)


def exact(query: str) -> str:
    """The form of a query in which nothing is levelled."""
    return _form(Shape.EXACT, query)


def _form(shape: Shape, text: str) -> str:
    return f"{shape}\0{text}"


def _cut(query: str) -> _Text | None:
    """The query in pieces; None where it holds a sign, a quote or an escape that can be read in two ways."""
    text = query.strip(_SPACE)
    if any(quote * 3 in text for quote in _QUOTES):
        return None
    if text.count("'") == len(_APOSTROPHE.findall(text)):
        text = text.replace("'", _LETTER_APOSTROPHE)
    pieces = _pieces(text)
    if pieces is None:
        return None
    opened = '"'.join(pieces[::2])
    return _Text(pieces, opened, tuple(_WORD.findall(opened)))


def _pieces(text: str) -> tuple[str, ...] | None:
    pieces, at = [""], 0
    while at < len(text):
        found = _PIECE.match(text, at)
        if found is None:
            return None
        if found[1] is not None:
            pieces[-1] = found[1]
        elif _touches_a_word(text, found.start(), found.end()):
            return None
        else:
            pieces += [found[0], ""]
        at = found.end()
    return tuple(pieces)


def _touches_a_word(text: str, start: int, end: int) -> bool:
    """Whether the quote belongs to a word, as in `f'...'`, `E'...'` or `the dogs' bowl`."""
    return _WORD.search(text[max(start - 1, 0) : start] + text[end : end + 1]) is not None


def _is_statement(text: _Text) -> bool:
    """Whether it reads as SQL in which a line end is a space."""
    if _STATEMENT.match(text.open) is None or "%(" in text.open or text.is_spoken:
        return False
    if _COMMENT.search(text.open) is not None or _SEPARATOR.search(text.open) is not None:
        return False
    # Two literals with a line end between them are one in SQL; with a space they are not.
    return not any(not piece.strip(_SPACE) and _LINE_END.search(piece) for piece in text.pieces[2:-1:2])


def _is_sentence(text: _Text) -> bool:
    """Whether it reads as English, in which capitals are a matter of style."""
    lowered = {_small(word) for word in text.words}
    if text.is_risky or _COMMENT.search(text.open) is not None:
        return False
    if not lowered.isdisjoint(CODE_WORDS) or text.first in SQL_VERBS or not _has_neighbours(text):
        return False
    if _LINE_END.search(text.open) is not None:
        return _is_english(text, lowered) and _line_ends_are_idle(text, lowered)
    return _is_english(text, lowered) or (not text.is_formal and _is_evenly_spelled(text))


def _is_english(text: _Text, lowered: set[str]) -> bool:
    if len(text.words) < _FEWEST_WORDS or text.first in FIRST_WORDS_OF_CODE:
        return False
    return text.first in OPENERS or not (lowered.isdisjoint(VERBS) or lowered.isdisjoint(MARKERS))


def _has_neighbours(text: _Text) -> bool:
    """Whether two words stand side by side: in an expression, `rate and x` or `is = x`, something joins every two."""
    for pair in _PAIR.finditer(text.open):
        one, other = _small(pair[1]), _small(pair[2])
        if pair.start() == 0 and one in OPENERS and (other in VERBS or other not in JOINING_WORDS):
            return True
        if one not in JOINING_WORDS and other not in JOINING_WORDS:
            return True
    return False


def _small(word: str) -> str:
    """The word as the lists have it: `what` of `What's`."""
    return word.lower().partition(_LETTER_APOSTROPHE)[0]


def _line_ends_are_idle(text: _Text, lowered: set[str]) -> bool:
    """Whether no line of it can be a line of code."""
    if text.is_formal:
        return ";" not in text.open and all(word in LITTLE_WORDS or word.isdigit() for word in lowered)
    return lowered.isdisjoint(FIRST_WORDS_OF_CODE)


def _is_evenly_spelled(text: _Text) -> bool:
    """Whether its words are all small, all in capitals, or all or only the first begin with one."""
    words = [word for word in text.words if len(word) > 1]
    if len(words) + len(text.pieces) // 2 < 2 or not words:
        return False
    spellings = (str.lower, str.upper, _capitalised)
    even = any(all(word == spell(word) for word in words) for spell in spellings)
    return even or (words[0] == _capitalised(words[0]) and all(word == word.lower() for word in words[1:]))


def _collides(text: _Text) -> bool:
    """Whether two words would become one: then capitals tell things apart in it."""
    words = text.words[1:] if text.is_formal else _without_little(text.words)
    quoted = (word for piece in text.pieces[1::2] for word in _without_little(_WORD.findall(piece)))
    known: dict[str, str] = {}
    return any(known.setdefault(word.lower(), word) != word for word in (*words, *quoted))


def _without_little(words: Iterable[str]) -> list[str]:
    return [word for word in words if word.lower() not in LITTLE_WORDS]


def _is_plain(text: _Text) -> bool:
    """Whether it is one line in which the spaces around a sign say nothing."""
    return not text.is_risky and not text.is_spoken and _LINE_END.search(text.open) is None


def _levelled(text: _Text, space: Callable[[re.Match[str]], str], spelling: _Spelling) -> str:
    """The query with its open pieces levelled."""
    pieces = list(text.pieces)
    for place in range(0, len(pieces), 2):
        spelled = _WORD.sub(lambda word: spelling(word[0], word.string[word.start() - 1 : word.start()]), pieces[place])
        pieces[place] = _RUN.sub(space, spelled)
    return "".join(pieces)


def _one_space(_run: re.Match[str]) -> str:
    return " "


def _space_at_signs(run: re.Match[str]) -> str:
    """One space beside a sign; what stands between two words, as in `name = a  b`, may be meant."""
    before, after = run.string[run.start() - 1 : run.start()], run.string[run.end() : run.end() + 1]
    return run[0] if _WORD.match(before) and _WORD.match(after) else " "


def _space_at_little_words(run: re.Match[str]) -> str:
    """One space beside a sign, and beside a word that is no part of a formula."""
    before = _LAST_WORD.search(run.string, max(run.start() - _LONGEST_LITTLE_WORD, 0), run.start())
    after = _WORD.match(run.string, run.end(), run.end() + _LONGEST_LITTLE_WORD)
    beside = {found[0].lower() for found in (before, after) if found is not None}
    return _space_at_signs(run) if beside.isdisjoint(LITTLE_WORDS) else " "


def _as_it_is(word: str, _before: str) -> str:
    return word


def _keyword(word: str, before: str) -> str:
    """SQL: reserved words alone, since names of tables may be case-sensitive."""
    small = word.lower()
    if before in _BEFORE_A_NAME or small not in SQL_WORDS:
        return word
    return small if word in (small, word.upper()) else word


def _little_word(word: str, _before: str) -> str:
    """Beside numbers and signs: `X` is not `x`, `MW` is not `mW`, and the words around them are no names."""
    return _lowered(word, _before) if word.lower() in LITTLE_WORDS else word


def _lowered(word: str, _before: str) -> str:
    """A word in small letters; a single letter and a word such as `userId` or `MHz` is kept."""
    small = word.lower()
    if len(word) < 2 or not word.isalpha():
        return word
    return small if word in (small, small.upper(), _capitalised(small)) else word


def _capitalised(word: str) -> str:
    return word[0].upper() + word[1:].lower()
