"""The same text spelt plainly: escapes read, letters of full width narrowed, what nobody sees left out.

Who reads an address, a JSON document or a page reads it so; a secret in it is as readable there as anywhere.
"""

import re
from array import array
from collections.abc import Callable
from typing import NamedTuple

from qwed.guards.text import Finding

_OTHERWISE = re.compile(
    r"%[2-7][0-9A-Fa-f]|\\u00[2-7][0-9A-Fa-f]|\\x[2-7][0-9A-Fa-f]|&(?:amp|lt|gt|quot|apos|#\d{2,3}|#x[2-7][0-9A-Fa-f]);"
    "|[\uff01-\uff5e]|[\u00ad\u034f\u180e\u200b-\u200d\u2060-\u2064\ufeff]"
)
_ENTITIES = {"&amp;": "&", "&lt;": "<", "&gt;": ">", "&quot;": '"', "&apos;": "'"}
_WIDE = 0xFEE0
_LARGEST = 0x7F


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
    if _OTHERWISE.search(text) is None:
        return None
    parts: list[str] = []
    begins = array("L")
    at = 0
    for match in _OTHERWISE.finditer(text):
        parts += (text[at : match.start()], letter := _letter(match[0]))
        begins.extend(range(at, match.start() + len(letter)))
        at = match.end()
    parts.append(text[at:])
    begins.extend(range(at, len(text) + 1))
    return Plainer("".join(parts), begins)


def _letter(spelt: str) -> str:
    if len(spelt) == 1:
        return chr(ord(spelt) - _WIDE) if "\uff01" <= spelt <= "\uff5e" else ""
    if spelt[0] == "&" and spelt[1] != "#":
        return _ENTITIES[spelt]
    code = int(spelt[2:-1]) if spelt[0] == "&" and spelt[2].isdigit() else int(spelt.lstrip("%\\ux&#").rstrip(";"), 16)
    return chr(code) if code <= _LARGEST else " "
