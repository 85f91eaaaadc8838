"""A citation as it is read: one kind of blank, quote and dash, and names of reporters without dots and blanks."""

import re
from functools import lru_cache

from qwed.packs.reading import text_of

LONGEST = 2_000
"""Characters of one citation."""

_SAME = str.maketrans(
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
_DROPPED = str.maketrans("", "", " .")


def cleaned(citation: object) -> str:
    """The text with one kind of blank, quote and dash, and without the full stop at its end."""
    text = text_of("citation", citation, LONGEST).translate(_SAME)
    text = _BLANKS.sub(" ", text).strip()
    while text.endswith((".", ";", ",")) and not text.endswith(("..", "f.", "seq.")) and len(text) > 1:
        text = text[:-1].rstrip()
    return text


@lru_cache(maxsize=8_192)
def key(name: str) -> str:
    """What is the same for `F. 3d`, `F.3d` and `F.3D`."""
    return _SERIES.sub(lambda found: found[0].lower(), name.translate(_DROPPED))


def whole(digits: str) -> bool:
    """Whether it is a number that a book prints: ASCII digits, not zero and without a zero in front."""
    return digits.isascii() and digits.isdigit() and not digits.startswith("0")
