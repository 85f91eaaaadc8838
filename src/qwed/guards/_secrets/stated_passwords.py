"""Passwords in sentences: stated after the word for a password, before it, or on the same line, in many languages."""

import re
from collections.abc import Iterator

from qwed.guards._secrets.languages import LANGUAGES, alternation
from qwed.guards._secrets.value_heuristics import (
    has_all_classes,
    is_composed,
    is_non_secret,
    is_password_like,
    is_real_value,
    is_strongly_composed,
)
from qwed.guards.text_scan import UNSCANNED, TextFinding

MAX_LINES = 1_000
"""Lines with a word for a password that are checked in one text; after that the rest is reported as unscanned."""
_WORDS = (
    *LANGUAGES.password,
    *(word + end for word in ("pass", "pw", "pwd") for end in (" ", ")", "'s ", ":", ",", "\n")),
)
_SHORT_WORDS = tuple(word for word in _WORDS if word.isascii() and len(word) < 6)
_QUOTES = "\"'`\u00ab\u00bb\u201c\u201d\u201e\u2018\u2019\u300c\u300d\u300e\u300f\u300a\u300b"
_VALUE = rf"[{_QUOTES}(\[{{<*]{{0,3}}(?P<value>[!-~]{{6,128}})"
_NAME = rf"(?:{alternation(LANGUAGES.password)}|\bpass|\bpw)"
_SAYS = (
    rf"\s{{0,3}}(?:'s\s|\u2192|->|=>|[\u2012-\u2015]|\s-\s)\s{{0,3}}|\s(?:{alternation(LANGUAGES.copula)})\s?:?\s{{1,2}}"
    r"|\s?[\u3400-\u9fff\u3040-\u30ff\uac00-\ud7af\u0e00-\u0e7f]{1,3}[\s:\uff1a\u3001,]{0,2}"
)
_REMARK = r"\s?\([^()\n]{1,40}\)"
_STATED = re.compile(rf"{_NAME}(?:(?:{_REMARK})?(?:{_SAYS})|{_REMARK}\s?[:=]\s{{0,3}}){_VALUE}")
_STATED_LATER = re.compile(rf"{_NAME}[\w\s'\u2019()/@.-]{{1,60}}?(?:{_SAYS}|\s?[:=]\s{{1,3}}){_VALUE}")
_BEFORE = re.compile(
    rf"(?P<value>[!-~]{{6,128}})[{_QUOTES}]{{0,2}}\s(?:{alternation(LANGUAGES.copula)})\s[^\n.!?:=]{{0,24}}{_NAME}"
)
_CANDIDATE = re.compile(r"(?<!\S)[^\s\"'`;()<>\[\]{}=]{8,64}(?!\S)|[^\s\"'`;()<>\[\]{}=&]{8,64}")
"""A whole word may have an `&`; between others it separates parameters."""
_ESCAPED = re.compile(r"%[0-9A-Fa-f]{2}|\$.*\$")
"""Escapes, and the signs between the parts of a hash."""
_NEAR = 100
_HEADING = 40


def find_stated_passwords(text: str, lowered: str, names: list[int]) -> Iterator[TextFinding]:
    """Yield the values that a sentence or a comment calls a password."""
    for count, (start, end) in enumerate(_lines(lowered, names)):
        if count == MAX_LINES:
            yield TextFinding(UNSCANNED, start, len(text))
            return
        if _SIGN.search(text, start, end):
            yield from _values(text, lowered, start, end)


def _values(text: str, lowered: str, start: int, end: int) -> Iterator[TextFinding]:
    for pattern, condition in _FORMS:
        for match in pattern.finditer(lowered, start, end):
            first, last = _trimmed(text, *match.span("value"))
            if _is_secret(text[first:last]) and condition(text[first:last]):
                yield TextFinding("assignment", first, last)
    for match in _CANDIDATE.finditer(text, start, end):
        if _is_unmistakable(match[0]) and _is_secret(match[0]) and not _ESCAPED.search(match[0]):
            yield TextFinding("assignment", *match.span())


def _is_generated(value: str) -> bool:
    return (is_strongly_composed(value) or is_password_like(value)) and not _NUMBERED.search(value)


# Every value has a digit or a special character, or both cases in a word.
_SIGN = re.compile(r"[0-9!@#$%^&*?+~|]|[a-z][A-Z]")
_NUMBERED = re.compile(r"[Vv]?[0-9]\.[0-9]")
_FORMS = ((_STATED, is_composed), (_STATED_LATER, _is_generated), (_BEFORE, _is_generated))


def _lines(lowered: str, names: list[int]) -> Iterator[tuple[int, int]]:
    """Yield the surroundings of each word for a password: the line, at most so many characters; none twice."""
    done = 0
    for position in names:
        if position < done or not lowered.startswith(_WORDS, position) or _is_inside_word(lowered, position):
            continue
        start = _start_of_line(lowered, position, done)
        end = lowered.find("\n", position, position + 2 * _NEAR)
        if 0 <= end <= position + _HEADING:
            # A comment or a heading: the value is in the next line.
            end = _end_of_next_line(lowered, end)
        done = min(position + 2 * _NEAR, len(lowered)) if end < 0 else end
        yield start, done


def _end_of_next_line(lowered: str, end: int) -> int:
    """Return the end of the next line, or of the one after it if that only separates the heading of a table."""
    if lowered.startswith(_SEPARATORS, end + 1):
        end = max(end, lowered.find("\n", end + 1, end + _NEAR))
    return lowered.find("\n", end + 1, end + _NEAR)


_SEPARATORS = ("|-", "|:", "| -", "+-", "+=", "--", "==")


def _start_of_line(lowered: str, position: int, done: int) -> int:
    """Return the start of the line, or of a whole word at most so many characters before the position."""
    line = lowered.rfind("\n", max(0, position - _NEAR), position) + 1
    if line or position <= _NEAR:
        return max(line, done)
    blank = lowered.find(" ", position - _NEAR, position)
    return max(position if blank < 0 else blank, done)


def _is_inside_word(lowered: str, position: int) -> bool:
    """Return True for a short word such as `mdp` inside a longer one, which may be random."""
    if not position or not (lowered[position - 1].isalnum() or lowered[position - 1] in "/+"):
        return False
    return lowered.startswith(_SHORT_WORDS, position) and not lowered.startswith("pass", position)


def _trimmed(text: str, start: int, end: int) -> tuple[int, int]:
    """Return the span without the punctuation of the sentence around the value."""
    value = text[start:end]
    for quote in _QUOTES:
        value = value.partition(quote)[0]
    value = value.rstrip(".,;:)]}>")
    return start, start + len(value)


def _is_secret(value: str) -> bool:
    return not is_non_secret(value) and is_real_value(value) and not _CODE.search(value)


# Calls, members, addresses and formats are no passwords.
_CODE = re.compile(
    r"[\w\])]\(|::|\w->|^[\w.+-]+@[\w-]+\.\w|://|%[sd(]|\\[nrtu]|==|!=|&&|\|\||^\W+\w+\W*$|^--?[a-z]|\.\w{1,4}$|[A-Za-z0-9]-[zZ9]|^[\w.-]+:[0-9]{2,5}$"
)


def _is_unmistakable(value: str) -> bool:
    """Return True if the value beside a word for a password can be nothing else."""
    return _is_generated(value) and (is_password_like(value) or has_all_classes(value))
