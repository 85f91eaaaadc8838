"""Escape sequences of `$'...'`, `printf` and `echo -e`."""

import re

_CODED = re.compile(
    r"\\(?:x([0-9a-fA-F]{1,2})|u([0-9a-fA-F]{1,4})|U([0-9a-fA-F]{1,8})|([0-7]{1,3})|c(.)|(.))", re.DOTALL
)
_SIMPLE_ESCAPES = {
    "n": "\n",
    "t": "\t",
    "r": "\r",
    "a": "\a",
    "b": "\b",
    "e": "\x1b",
    "E": "\x1b",
    "f": "\f",
    "v": "\v",
}


_PLAIN_ANSI = re.compile(
    r"(?:[^\\]|\\(?:[abeEfnrtv\\'\"?]|x(?!00)[0-7][0-9a-fA-F]|u(?!0000)[0-9a-fA-F]{4}|0?[1-7][0-7]?(?![0-7])|1[0-7]{2}))*+",
    re.DOTALL,
)


def is_plain_ansi(text: str) -> bool:
    """Return True if every escape in `$'...'` stands for one character of ASCII, and not for the end of the text."""
    return _PLAIN_ANSI.fullmatch(text) is not None


def unescape(text: str) -> str:
    """Return the text as `printf` or `echo -e` prints it."""
    return _CODED.sub(_decode_match, text)


def _decode_match(match: "re.Match[str]") -> str:
    """Return the character that an escape sequence stands for."""
    for group, base in ((1, 16), (2, 16), (3, 16), (4, 8)):
        if match[group]:
            return chr(min(int(match[group], base), 0x10FFFF))
    return "" if match[5] else _SIMPLE_ESCAPES.get(match[6], match[6])
