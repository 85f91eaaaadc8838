"""Normalisation of queries: case and white space are normalised only where they cannot carry a meaning.

A wrong hit would answer a false claim with the result of a true one; a miss costs one verification. Text that is not
recognised therefore stays unchanged. The kind of a query is part of the normal form, so that queries of different
kinds never share an entry.
"""

import re
from collections.abc import Callable, Iterable
from enum import StrEnum
from typing import NamedTuple

from qwed_sdk.cache.word_lists import (
    CODE_OPENERS,
    CODE_WORDS,
    FUNCTION_WORDS,
    MARKERS,
    OPERATOR_WORDS,
    SENTENCE_OPENERS,
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
# A full stop inside a word, as in `os.remove`, does not end a sentence.
_SIGN = re.compile(r"[:;()+*/^=<>%-]|[.,](?=\w)")
_COMMENT = re.compile(r"--|//|/\*")
_LAST_WORD = re.compile(r"\w+\Z")
_MAX_FUNCTION_WORD = max(map(len, FUNCTION_WORDS)) + 1
# Alone on a line, `go` and `/` end an SQL batch; elsewhere they are a name or an operator.
_SEPARATOR = re.compile(r"^[ \t]*(?:go|/)[ \t]*$", re.IGNORECASE | re.MULTILINE)
_LINE_END = re.compile(r"[\r\n]")
_STATEMENT = re.compile(
    r"select\s+[\d\"(*]|select\s.*\bfrom\b|insert\s+into\s|update\s+[\w.]+\s+set\s|delete\s+from\s"
    r"|with\s.*\bas\s*\(\s*select\s",
    re.IGNORECASE | re.DOTALL,
)
_BEFORE_A_NAME = frozenset(".:%")
_MIN_SENTENCE_WORDS = 3


class QueryKind(StrEnum):
    """Kind of a query, which determines what is normalised."""

    EXACT = "exact"
    PLAIN = "plain"
    STATEMENT = "statement"
    SENTENCE = "sentence"


class _ParsedQuery(NamedTuple):
    """Query split into unquoted and quoted pieces by turns; quoted pieces stay unchanged."""

    pieces: tuple[str, ...]
    open: str
    words: tuple[str, ...]

    @property
    def first(self) -> str:
        return _list_word(self.words[0]) if self.words else ""

    @property
    def is_formal(self) -> bool:
        """True if it has a number, an operator or a name such as `user_id`."""
        return self.has_signs or not all(map(str.isalpha, self.words))

    @property
    def is_spoken(self) -> bool:
        """True if it has apostrophes, which would be quotes in anything but a sentence."""
        return _LETTER_APOSTROPHE in self.open

    @property
    def has_signs(self) -> bool:
        return _SIGN.search(self.open) is not None

    @property
    def is_risky(self) -> bool:
        """True if spaces may belong to a value (`name: a  b`), to markup, or to a pattern between slashes."""
        return any(sign in self.open for sign in (":", "</", "/>")) or self.open.count("/") > 1


_SpellWord = Callable[[str, str], str]
"""Function that spells a word, given the character before it."""


def normalize_query(query: str) -> str:
    """Return the normal form, which is equal for two queries only if their difference cannot carry a meaning."""
    text = _parse(query)
    if text is None:
        return exact_form(query)
    if _is_statement(text):
        return _tagged(QueryKind.STATEMENT, _rewrite(text, _one_space, _lower_keyword))
    if _is_sentence(text) and not _case_is_significant(text):
        space = _space_at_function_words if text.has_signs else _one_space
        return _tagged(
            QueryKind.SENTENCE, _rewrite(text, space, _lower_function_word if text.is_formal else _lower_word)
        )
    if _is_plain(text):
        return _tagged(QueryKind.PLAIN, _rewrite(text, _space_at_signs if text.has_signs else _one_space, _unchanged))
    return exact_form(query)


def exact_form(query: str) -> str:
    """Return the form of a query without any normalisation."""
    return _tagged(QueryKind.EXACT, query)


def _tagged(kind: QueryKind, text: str) -> str:
    return f"{kind}\0{text}"


def _parse(query: str) -> _ParsedQuery | None:
    """Return the query in pieces, or None if a sign, quote or escape in it is ambiguous."""
    text = query.strip(_SPACE)
    if any(quote * 3 in text for quote in _QUOTES):
        return None
    if text.count("'") == len(_APOSTROPHE.findall(text)):
        text = text.replace("'", _LETTER_APOSTROPHE)
    pieces = _split_quoted(text)
    if pieces is None:
        return None
    opened = '"'.join(pieces[::2])
    return _ParsedQuery(pieces, opened, tuple(_WORD.findall(opened)))


def _split_quoted(text: str) -> tuple[str, ...] | None:
    pieces, at = [""], 0
    while at < len(text):
        match = _PIECE.match(text, at)
        if match is None:
            return None
        if match[1] is not None:
            pieces[-1] = match[1]
        elif _touches_a_word(text, match.start(), match.end()):
            return None
        else:
            pieces += [match[0], ""]
        at = match.end()
    return tuple(pieces)


def _touches_a_word(text: str, start: int, end: int) -> bool:
    """Return True if the quote belongs to a word, as in `f'...'`, `E'...'` or `the dogs' bowl`."""
    return _WORD.search(text[max(start - 1, 0) : start] + text[end : end + 1]) is not None


def _is_statement(text: _ParsedQuery) -> bool:
    """Return True if it is SQL in which a line end equals a space."""
    if _STATEMENT.match(text.open) is None or "%(" in text.open or text.is_spoken:
        return False
    if _COMMENT.search(text.open) is not None or _SEPARATOR.search(text.open) is not None:
        return False
    # SQL joins two literals with a line end between them, but not with a space.
    return not any(not piece.strip(_SPACE) and _LINE_END.search(piece) for piece in text.pieces[2:-1:2])


def _is_sentence(text: _ParsedQuery) -> bool:
    """Return True if it is English, in which case carries no meaning."""
    lowered = {_list_word(word) for word in text.words}
    if text.is_risky or _COMMENT.search(text.open) is not None:
        return False
    if not lowered.isdisjoint(CODE_WORDS) or text.first in SQL_VERBS or not _has_adjacent_words(text):
        return False
    if _LINE_END.search(text.open) is not None:
        return _is_english(text, lowered) and _has_no_code_lines(text, lowered)
    return _is_english(text, lowered) or (not text.is_formal and _is_evenly_spelled(text))


def _is_english(text: _ParsedQuery, lowered: set[str]) -> bool:
    if len(text.words) < _MIN_SENTENCE_WORDS or text.first in CODE_OPENERS:
        return False
    return text.first in SENTENCE_OPENERS or not (lowered.isdisjoint(VERBS) or lowered.isdisjoint(MARKERS))


def _has_adjacent_words(text: _ParsedQuery) -> bool:
    """Return True if two words stand next to each other: an expression (`rate and x`, `is = x`) joins every two."""
    for pair in _PAIR.finditer(text.open):
        one, other = _list_word(pair[1]), _list_word(pair[2])
        if pair.start() == 0 and one in SENTENCE_OPENERS and (other in VERBS or other not in OPERATOR_WORDS):
            return True
        if one not in OPERATOR_WORDS and other not in OPERATOR_WORDS:
            return True
    return False


def _list_word(word: str) -> str:
    """Return the word as in the lists: `what` for `What's`."""
    return word.lower().partition(_LETTER_APOSTROPHE)[0]


def _has_no_code_lines(text: _ParsedQuery, lowered: set[str]) -> bool:
    """Return True if no line of it can be code."""
    if text.is_formal:
        return ";" not in text.open and all(word in FUNCTION_WORDS or word.isdigit() for word in lowered)
    return lowered.isdisjoint(CODE_OPENERS)


def _is_evenly_spelled(text: _ParsedQuery) -> bool:
    """Return True if its words are all lower case, all upper case, all capitalised, or only the first is."""
    words = [word for word in text.words if len(word) > 1]
    if len(words) + len(text.pieces) // 2 < 2 or not words:
        return False
    spellings = (str.lower, str.upper, _capitalised)
    even = any(all(word == spell(word) for word in words) for spell in spellings)
    return even or (words[0] == _capitalised(words[0]) and all(word == word.lower() for word in words[1:]))


def _case_is_significant(text: _ParsedQuery) -> bool:
    """Return True if two words differ only in case: then case tells things apart."""
    words = text.words[1:] if text.is_formal else _without_function_words(text.words)
    quoted = (word for piece in text.pieces[1::2] for word in _without_function_words(_WORD.findall(piece)))
    spellings: dict[str, str] = {}
    return any(spellings.setdefault(word.lower(), word) != word for word in (*words, *quoted))


def _without_function_words(words: Iterable[str]) -> list[str]:
    return [word for word in words if word.lower() not in FUNCTION_WORDS]


def _is_plain(text: _ParsedQuery) -> bool:
    """Return True if it is one line in which the spaces around a sign carry no meaning."""
    return not text.is_risky and not text.is_spoken and _LINE_END.search(text.open) is None


def _rewrite(text: _ParsedQuery, space: Callable[[re.Match[str]], str], spelling: _SpellWord) -> str:
    """Return the query with its unquoted pieces normalised."""
    pieces = list(text.pieces)
    for index in range(0, len(pieces), 2):
        spelled = _WORD.sub(lambda word: spelling(word[0], word.string[word.start() - 1 : word.start()]), pieces[index])
        pieces[index] = _RUN.sub(space, spelled)
    return "".join(pieces)


def _one_space(_run: re.Match[str]) -> str:
    return " "


def _space_at_signs(run: re.Match[str]) -> str:
    """Return one space next to a sign; a run of spaces between two words, as in `name = a  b`, stays."""
    before, after = run.string[run.start() - 1 : run.start()], run.string[run.end() : run.end() + 1]
    return run[0] if _WORD.match(before) and _WORD.match(after) else " "


def _space_at_function_words(run: re.Match[str]) -> str:
    """Return one space next to a sign, and next to a word that is not part of a formula."""
    before = _LAST_WORD.search(run.string, max(run.start() - _MAX_FUNCTION_WORD, 0), run.start())
    after = _WORD.match(run.string, run.end(), run.end() + _MAX_FUNCTION_WORD)
    neighbours = {match[0].lower() for match in (before, after) if match is not None}
    return _space_at_signs(run) if neighbours.isdisjoint(FUNCTION_WORDS) else " "


def _unchanged(word: str, _before: str) -> str:
    return word


def _lower_keyword(word: str, before: str) -> str:
    """Lower-case reserved words of SQL only, because table names may be case-sensitive."""
    small = word.lower()
    if before in _BEFORE_A_NAME or small not in SQL_WORDS:
        return word
    return small if word in (small, word.upper()) else word


def _lower_function_word(word: str, _before: str) -> str:
    """Lower-case function words only: next to numbers, `X` is not `x` and `MW` is not `mW`."""
    return _lower_word(word, _before) if word.lower() in FUNCTION_WORDS else word


def _lower_word(word: str, _before: str) -> str:
    """Lower-case a word, except a single letter and mixed case such as `userId` or `MHz`."""
    small = word.lower()
    if len(word) < 2 or not word.isalpha():
        return word
    return small if word in (small, small.upper(), _capitalised(small)) else word


def _capitalised(word: str) -> str:
    return word[0].upper() + word[1:].lower()
