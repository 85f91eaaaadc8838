"""Text inside an action: every string of its parameters, and what a guard found where."""

import re
import string
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

MAX_SCANNED = 1 << 20
"""Characters of one text that are looked at: the largest body the server takes."""
UNSCANNED = "unscanned"
"""The kind of a finding that says: the text goes on here, and nobody looked."""

MAX_STRINGS = 10_000
MAX_DEPTH = 64
# A card number sent as a JSON number is as readable as one sent as text.
_TELLING_NUMBERS = (10**12, 10**19)


_UNSEEN = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ufff9-\ufffb"
    "\ud800-\udfff\U000e0000-\U000e007f]"
)
"""Controls, and marks that turn the direction of a text or hide in it: what is read must be what was written."""
_BLANK = frozenset("\u115f\u1160\u2800\u3164\uffa0")
"""Letters that look like nothing."""


def has_unseen(text: str) -> bool:
    """Whether a text holds what nobody can see and what changes how it reads."""
    return _UNSEEN.search(text) is not None


def readable(text: str) -> bool:
    """Whether a person can read it: something to see, and nothing that deceives the eye."""
    visible = any(each.isprintable() and not each.isspace() and each not in _BLANK for each in text)
    return visible and not has_unseen(text)


def lower(text: str) -> str:
    """The text in lower case, as long as it was: a few letters grow when lowered, and spans must fit."""
    lowered = text.lower()
    return lowered if len(lowered) == len(text) else text.translate(_TO_LOWER)


_TO_LOWER = str.maketrans(string.ascii_uppercase, string.ascii_lowercase)


class Finding(NamedTuple):
    """What was found, and the half-open span of the text that holds it."""

    kind: str
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Strings:
    """(path, text) pairs; `complete` is false where a bound cut the walk short and something was not seen."""

    pairs: tuple[tuple[str, str], ...]
    complete: bool

    def __iter__(self) -> Iterator[tuple[str, str]]:
        return iter(self.pairs)


def strings_in(parameters: Any) -> Strings:
    """Every string of a JSON value, object keys and long whole numbers included, in document order."""
    pairs: list[tuple[str, str]] = []
    waiting: list[tuple[str, Any, int]] = [("", parameters, 0)]
    while waiting:
        path, value, depth = waiting.pop()
        if isinstance(value, str):
            pairs.append((path, value))
        elif isinstance(value, Mapping | list | tuple):
            if depth == MAX_DEPTH or len(value) + len(waiting) + len(pairs) > MAX_STRINGS:
                return Strings(tuple(pairs), complete=False)
            waiting.extend(reversed(list(_members(path, value, depth + 1))))
        elif isinstance(value, int | float) and _TELLING_NUMBERS[0] <= value < _TELLING_NUMBERS[1]:
            pairs.append((path, str(int(value))))
    return Strings(tuple(pairs), complete=len(pairs) <= MAX_STRINGS)


def _members(path: str, value: Mapping[Any, Any] | list[Any] | tuple[Any, ...], depth: int) -> Iterator[Any]:
    prefix = f"{path}." if path else ""
    if not isinstance(value, Mapping):
        yield from ((f"{prefix}{index}", item, depth) for index, item in enumerate(value))
        return
    for key, item in value.items():
        name = key if isinstance(key, str) else ""
        # A path is a place to point at: the key's whole text travels as a string of its own.
        at = f"{prefix}{name[:_MAX_NAME]}"
        yield at, name, depth
        yield at, item, depth


_MAX_NAME = 64
