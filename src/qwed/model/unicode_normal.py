"""Unicode normalisation in linear time.

The combining marks of one letter are sorted by pairwise comparison, so a megabyte of marks would take minutes. Marks
beyond MAX_COMBINING_MARKS per letter are dropped; no language needs more.
"""

import re
import unicodedata
from functools import cache
from typing import Literal

MAX_COMBINING_MARKS = 30
"""The limit of Unicode's stream-safe text format (UAX 15, section 13)."""
INVISIBLE_CHARACTERS = (
    "\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e\u2060-\u206f\u2800\u3164"
    "\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufff8\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff"
)
"""Character class members: default-ignorable code points and a blank Braille sign."""
_FIRST, _LAST = 0x300, 0x1F000
"""Range that contains all combining marks."""


def normalize(form: Literal["NFC", "NFD", "NFKC", "NFKD"], text: str) -> str:
    """Return the text in a normal form, without excess combining marks."""
    return unicodedata.normalize(form, limit_combining_marks(text))  # noqa: TID251  # the only call, with limited marks


def limit_combining_marks(text: str) -> str:
    """Return the text without excess combining marks; the same object if there are none."""
    if len(text) <= MAX_COMBINING_MARKS or text.isascii():
        return text
    return _excess_marks_pattern().sub(r"\1", text)


@cache
def _excess_marks_pattern() -> re.Pattern[str]:
    marks = "".join(filter(_is_mark, map(chr, range(_FIRST, _LAST))))
    return re.compile(f"([{marks}]{{{MAX_COMBINING_MARKS}}})[{marks}]+")


def _is_mark(char: str) -> bool:
    if not unicodedata.decomposition(char):
        return unicodedata.combining(char) > 0
    # Some characters are marks only after decomposition.
    return unicodedata.combining(unicodedata.normalize("NFKD", char)[0]) > 0  # noqa: TID251  # a single character
