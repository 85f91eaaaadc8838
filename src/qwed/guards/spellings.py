"""The same text spelt plainly: escapes read, letters of full width narrowed, what nobody sees left out.

Who reads an address, a JSON document or a page reads it so; a secret in it is as readable there as anywhere.
"""

import html
import re
from array import array
from collections.abc import Callable, Iterator
from itertools import chain
from typing import NamedTuple

from qwed.guards.text import Finding

_OTHERWISE = re.compile(
    r"(?P<percent>(?:%[2-7][0-9A-Fa-f])+)|(?P<json>(?:\\u00[2-7][0-9A-Fa-f])+)|(?P<byte>(?:\\x[2-7][0-9A-Fa-f])+)"
    "|(?P<wide>[\uff01-\uff5e]+)|(?P<unseen>[\u00ad\u034f\u180e\u200b-\u200d\u2060-\u2064\ufeff]+)"
    r"|(?P<entity>&(?:amp|lt|gt|quot|apos|#(?:3[2-9]|[4-9]\d|1[01]\d|12[0-6])|#[xX][2-7][0-9A-Fa-f]);)"
)
"""Runs of what stands for something else: one at a time would take too long."""
_SIGNS = re.compile("[%\\\\&\u00ad\u034f\u180e\u200b-\u200d\u2060-\u2064\ufeff\uff01-\uff5e]")
"""What each of them begins with. Sought first: a set of signs is passed over many times as fast as all the forms, and
who looks through a long text in one go holds the interpreter, and with it everybody else, as long as that takes."""
_ESCAPES = {"percent": "%", "json": "\\u00", "byte": "\\x"}
_NARROW = {wide: wide - 0xFEE0 for wide in range(0xFF01, 0xFF5F)}


class Plainer(NamedTuple):
    """A text spelt plainly, and where each of its characters begins in the one it was made of."""

    text: str
    begins: "array[int]"

    def span(self, start: int, end: int) -> tuple[int, int]:
        """Where a part of it stands in the text it was made of."""
        return self.begins[start], self.begins[end]


def in_every_spelling(text: str, find: Callable[[str], list[Finding]]) -> list[Finding]:
    """What is found in the text as it stands and in the same text spelt plainly, by its place in the first."""
    plain = plainer(text)
    if plain is None:
        return find(text)
    return find(text) + [Finding(kind, *plain.span(start, end)) for kind, start, end in find(plain.text)]


def plainer(text: str) -> Plainer | None:
    """The text spelt plainly; None where it is already."""
    runs = _runs(text)
    first = next(runs, None)
    if first is None:
        return None
    parts: list[str] = []
    begins = array("L")
    at = 0
    for match in chain((first,), runs):
        letters = _letters(match.lastgroup or "", match[0])
        parts += (text[at : match.start()], letters)
        begins.extend(range(at, match.start()))
        if letters:
            begins.extend(range(match.start(), match.end(), len(match[0]) // len(letters)))
        at = match.end()
    parts.append(text[at:])
    begins.extend(range(at, len(text) + 1))
    return Plainer("".join(parts), begins)


def _runs(text: str) -> Iterator[re.Match[str]]:
    at = 0
    while (sign := _SIGNS.search(text, at)) is not None:
        match = _OTHERWISE.match(text, sign.start())
        at = sign.end() if match is None else match.end()
        if match is not None:
            yield match


def _letters(kind: str, spelt: str) -> str:
    """What a run stands for, every letter in as many characters as the others."""
    if kind in _ESCAPES:
        return bytes.fromhex(spelt.replace(_ESCAPES[kind], "")).decode("ascii")
    if kind == "entity":
        return html.unescape(spelt)
    return spelt.translate(_NARROW) if kind == "wide" else ""
