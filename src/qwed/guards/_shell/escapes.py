"""The escapes of `$'...'`, `printf` and `echo -e`."""

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


def unescaped(text: str) -> str:
    """Text as `printf` or `echo -e` prints it."""
    return _CODED.sub(_decoded, text)


def _decoded(match: "re.Match[str]") -> str:
    """The character an escape of `$'...'`, `printf` or `echo -e` stands for."""
    for group, base in ((1, 16), (2, 16), (3, 16), (4, 8)):
        if match[group]:
            return chr(min(int(match[group], base), 0x10FFFF))
    return "" if match[5] else _SIMPLE_ESCAPES.get(match[6], match[6])
