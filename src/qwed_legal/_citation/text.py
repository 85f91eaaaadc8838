"""Text normalisation of citations: one kind of blank, quote and dash, and reporter names without dots and blanks."""

import re
from functools import lru_cache

from qwed.packs.value_parsing import text_of

MAX_LENGTH = 2_000
"""Maximum length of one citation in characters."""

_EQUIVALENTS = str.maketrans(
    {
        **dict.fromkeys("\u00a0\u2002\u2003\u2007\u2009\u200a\u202f\t\n\r", " "),
        **dict.fromkeys("\u2018\u2019\u02bc\u00b4`", "'"),
        **dict.fromkeys("\u201c\u201d", '"'),
        **dict.fromkeys("\u2010\u2011\u2012\u2013\u2212", "-"),
        "\u2014": "-",
    }
)
_BLANKS = re.compile(r" {2,}")
_SERIES = re.compile(r"(?<=[0-9])(?:D|ND|RD|TH|ST)\b")
_DOTS_AND_BLANKS = str.maketrans("", "", " .")


def clean_citation(citation: object) -> str:
    """Return the text with one kind of blank, quote and dash, and without trailing punctuation."""
    text = text_of("citation", citation, MAX_LENGTH).translate(_EQUIVALENTS)
    text = _BLANKS.sub(" ", text).strip()
    while text.endswith((".", ";", ",")) and not text.endswith(("..", "f.", "seq.")) and len(text) > 1:
        text = text[:-1].rstrip()
    return text


@lru_cache(maxsize=8_192)
def normalise_name(name: str) -> str:
    """Return the same key for `F. 3d`, `F.3d` and `F.3D`."""
    return _SERIES.sub(lambda match: match[0].lower(), name.translate(_DOTS_AND_BLANKS))


def is_plain_number(digits: str) -> bool:
    """Return True for ASCII digits that are not zero and have no leading zero."""
    return digits.isascii() and digits.isdigit() and not digits.startswith("0")
