"""Normalisation of queries: prose is lower-cased and its white space collapsed, outside quotes.

A wrong hit would answer a false claim with the result of a true one; a miss costs one verification. Code keeps its
case, and text of several lines or with signs that prose does not have stays unchanged. The kind of a query is part of
the normal form, so that queries of different kinds never share an entry.
"""

import re
from enum import StrEnum

_SPACE = " \t\r\n"
_APOSTROPHE = re.compile(r"(?<=[^\W\d_])'(?=[^\W\d_])")
_LETTER_APOSTROPHE = "\u02bc"
_PIECE = re.compile(r"""([\w \t.,?!()+*/^=<>%\u02bc-]+)|(?<!\w)(?:'[^'"`\\]*'|"[^'"`\\]*"|`[^'"`\\]*`)(?!['"`\w])""")
_UNSAFE = re.compile(r"[\r\n]|'''|\"\"\"|```|--|//|</|/>|/.*/", re.DOTALL)
_WORD = re.compile(r"\w+")
_RUN = re.compile(r"[ \t]+")
_RUN_AT_SIGN = re.compile(r"(?<![\w \t])[ \t]++|(?<![ \t])[ \t]++(?!\w)")
# A call, a dotted name, or an operator next to a name.
_CODE = re.compile(r"\w\(|\w\.\w|[^\W\d][ \t]?[=+*/^<>%]|[=+*/^<>%-][ \t]?\(*[^\W\d]|[^\W\d][ \t]-")


class QueryKind(StrEnum):
    """Kind of a query, which determines what is normalised."""

    EXACT = "exact"
    CODE = "code"
    PROSE = "prose"


def normalize_query(query: str) -> str:
    """Return the normal form, in which case and white space of prose do not count."""
    text = query.strip(_SPACE)
    if text.count("'") == 1:
        text = _APOSTROPHE.sub(_LETTER_APOSTROPHE, text)
    pieces = None if _UNSAFE.search(text) else _split_quoted(text)
    if pieces is None:
        return exact_form(query)
    if _is_code(pieces):
        return _tagged(QueryKind.CODE, _join(pieces, [_RUN_AT_SIGN.sub(" ", piece) for piece in pieces[::2]]))
    return _tagged(
        QueryKind.PROSE, _join(pieces, [_WORD.sub(_lower_word, _RUN.sub(" ", piece)) for piece in pieces[::2]])
    )


def exact_form(query: str) -> str:
    """Return the form of a query without any normalisation."""
    return _tagged(QueryKind.EXACT, query)


def _tagged(kind: QueryKind, text: str) -> str:
    return f"{kind}\0{text}"


def _split_quoted(text: str) -> list[str] | None:
    """Return unquoted and quoted pieces by turns, or None if a sign or a quote is ambiguous."""
    pieces, at = [""], 0
    while at < len(text):
        match = _PIECE.match(text, at)
        if match is None:
            return None
        if match[1] is not None:
            pieces[-1] = match[1]
        else:
            pieces += [match[0], ""]
        at = match.end()
    return pieces


def _is_code(pieces: list[str]) -> bool:
    """Return True if case tells things apart: an expression, a name such as `userId`, or two words equal but for it."""
    opened = '"'.join(pieces[::2])
    if _CODE.search(opened):
        return True
    words = _WORD.findall(opened)
    spellings: dict[str, str] = {}
    return not all(word.isdecimal() or _is_plain_word(word) for word in words) or any(
        spellings.setdefault(word.lower(), word) != word for word in (*words, *_WORD.findall(" ".join(pieces[1::2])))
    )


def _is_plain_word(word: str) -> bool:
    """Return True if it has letters only and is lower case, upper case or capitalised, unlike `userId` or `1E5`."""
    small = word.lower()
    return word.isalpha() and (len(word) == 1 or word in (small, small.upper(), small[0].upper() + small[1:]))


def _lower_word(word: re.Match[str]) -> str:
    """Lower-case a word, except a single letter, which is a variable or a unit."""
    return word[0] if len(word[0]) == 1 else word[0].lower()


def _join(pieces: list[str], opened: list[str]) -> str:
    return "".join(part for pair in zip(opened, [*pieces[1::2], ""], strict=True) for part in pair)
