"""Unicode's normal forms, in time that grows as the text does.

The marks over one letter are put in order by comparing each with those before it: of a megabyte of marks that would
take minutes in which nothing else runs. So a letter has at most MOST_MARKS; more are no letter of any language.
"""

import re
import unicodedata
from functools import cache
from typing import Literal

MOST_MARKS = 30
"""As Unicode's stream-safe text has (UAX 15, 13)."""
UNSEEN = (
    "\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e\u2060-\u206f\u2800\u3164"
    "\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufff8\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff"
)
"""Members of a character class: what Unicode lets fonts leave out, and a sign that is all blank."""
_FIRST, _LAST = 0x300, 0x1F000
"""Where all marks are."""


def normalize(form: Literal["NFC", "NFD", "NFKC", "NFKD"], text: str) -> str:
    """The text in a normal form, without the marks that are too many."""
    return unicodedata.normalize(form, with_few_marks(text))  # noqa: TID251  # the one place, with few marks


def with_few_marks(text: str) -> str:
    """The text without the marks that are too many: the very same where there are none."""
    if len(text) <= MOST_MARKS or text.isascii():
        return text
    return _too_many_marks().sub(r"\1", text)


@cache
def _too_many_marks() -> re.Pattern[str]:
    marks = "".join(filter(_is_mark, map(chr, range(_FIRST, _LAST))))
    return re.compile(f"([{marks}]{{{MOST_MARKS}}})[{marks}]+")


def _is_mark(each: str) -> bool:
    if not unicodedata.decomposition(each):
        return unicodedata.combining(each) > 0
    # Some are marks only once they are taken apart.
    return unicodedata.combining(unicodedata.normalize("NFKD", each)[0]) > 0  # noqa: TID251  # one letter
