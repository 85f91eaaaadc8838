"""Text scanning helpers: the strings of an action's parameters, and findings with their position."""

import re
import string
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

MAX_SCANNED = 1 << 20
"""Characters of one text that are scanned: the largest body the server accepts."""
UNSCANNED = "unscanned"
"""Kind of the finding that marks the part of a text that was not scanned."""

MAX_STRINGS = 10_000
MAX_DEPTH = 64
# A card number sent as a JSON number is as readable as one sent as text.
_LONG_NUMBERS = (10**12, 10**19)

is_plain = re.compile(r"[a-z_]{1,15}|(?=.{0,15}\Z)(?:[ +*/().^=<>-]*[0-9]){0,7}[ +*/().^=<>-]*").fullmatch
"""Match a text too short and plain to hold a secret or personal data: one word, or a calculation of few digits.

Every name, prefix and label that the guards search for needs a letter beside a sign or a digit; every token, encoding
and number without one is longer.
"""

_INVISIBLE = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ufff9-\ufffb"
    "\ud800-\udfff\U000e0000-\U000e007f]"
)
"""Control characters, and characters that change the text direction or are invisible."""
_BLANK = frozenset("\u115f\u1160\u2800\u3164\uffa0")
"""Letters without a visible glyph."""


def has_invisible(text: str) -> bool:
    """Return True if the text contains invisible characters that change how it reads."""
    return _INVISIBLE.search(text) is not None


def is_readable(text: str) -> bool:
    """Return True if the text has something visible and no misleading invisible characters."""
    visible = any(character.isprintable() and not character.isspace() and character not in _BLANK for character in text)
    return visible and not has_invisible(text)


def lower_same_length(text: str) -> str:
    """Return the text in lower case with its length unchanged: some letters grow when lowered, and spans must fit."""
    lowered = text.lower()
    return lowered if len(lowered) == len(text) else text.translate(_TO_LOWER)


_TO_LOWER = str.maketrans(string.ascii_uppercase, string.ascii_lowercase)


class TextFinding(NamedTuple):
    """Kind of a finding, and its half-open span in the text."""

    kind: str
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Strings:
    """(path, text) pairs; `complete` is False if a limit stopped the traversal."""

    pairs: tuple[tuple[str, str], ...]
    complete: bool

    def __iter__(self) -> Iterator[tuple[str, str]]:
        return iter(self.pairs)


NO_STRINGS = Strings((), complete=True)


def strings_in(parameters: Any) -> Strings:
    """Return every string of a JSON value in document order, including object keys and long whole numbers."""
    pairs: list[tuple[str, str]] = []
    stack: list[tuple[str, Any, int]] = [("", parameters, 0)]
    while stack:
        path, value, depth = stack.pop()
        if isinstance(value, str):
            pairs.append((path, value))
        elif isinstance(value, Mapping | list | tuple):
            if depth == MAX_DEPTH or len(value) + len(stack) + len(pairs) > MAX_STRINGS:
                return Strings(tuple(pairs), complete=False)
            stack.extend(reversed(list(_members(path, value, depth + 1))))
        elif isinstance(value, int | float) and _LONG_NUMBERS[0] <= value < _LONG_NUMBERS[1]:
            pairs.append((path, str(int(value))))
    return Strings(tuple(pairs), complete=len(pairs) <= MAX_STRINGS)


def _members(path: str, value: Mapping[Any, Any] | list[Any] | tuple[Any, ...], depth: int) -> Iterator[Any]:
    prefix = f"{path}." if path else ""
    if not isinstance(value, Mapping):
        yield from ((f"{prefix}{index}", item, depth) for index, item in enumerate(value))
        return
    for key, item in value.items():
        name = key if isinstance(key, str) else ""
        # The path only locates the value, so the key is cut here; its whole text is a string of its own.
        member_path = f"{prefix}{name[:_MAX_NAME]}"
        yield member_path, name, depth
        yield member_path, item, depth


_MAX_NAME = 64
