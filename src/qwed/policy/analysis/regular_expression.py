"""Reader of regular expressions (RE2) into those of the solver; what it does not know is not read."""

from collections.abc import Iterator
from typing import Any

from qwed.policy.analysis.symbols import solver_library, string

_LAST = 0x2FFFF
"""Largest character of the solver."""
MAX_REPEATS = 64
_NEWLINE = 10
_DIGITS = ((48, 57),)
_LETTERS = ((48, 57), (65, 90), (95, 95), (97, 122))
_SPACES = ((9, 10), (12, 13), (32, 32))
_ESCAPED = {"d": _DIGITS, "w": _LETTERS, "s": _SPACES, "n": ((10, 10),), "t": ((9, 9),), "r": ((13, 13),)}
_NEGATED = {"D": _DIGITS, "W": _LETTERS, "S": _SPACES}
_SPECIAL = "\\.+*?()|[]{}^$"
Ranges = tuple[tuple[int, int], ...]


class UnknownPatternError(Exception):
    """A regular expression has a part that is not read."""


def read_pattern(pattern: str) -> Any:
    """Return the texts in which a pattern is found; raise UnknownPatternError if it has a part that is not read."""
    reader = _PatternReader(pattern)
    found = reader.alternatives(top=True)
    if not reader.at_end:
        raise UnknownPatternError(pattern)
    return found


def texts_before(literal: str, *, included: bool) -> Any:
    """Return the texts that are less than a literal, or equal to it too; the solver's own order of texts is slow."""
    z3 = solver_library()
    anything = z3.Full(z3.ReSort(z3.StringSort()))
    parts = [z3.Re(string(literal[:length])) for length in range(len(literal) + included)]
    for place, char in enumerate(literal):
        if ord(char) > 0:
            less = z3.Range(string(chr(0)), string(chr(ord(char) - 1)))
            parts.append(z3.Concat(z3.Re(string(literal[:place])), less, anything))
    if not parts:
        return z3.Empty(z3.ReSort(z3.StringSort()))
    return parts[0] if len(parts) == 1 else z3.Union(*parts)


def is_known_pattern(pattern: str) -> bool:
    """Return True if the pattern can be read."""
    try:
        read_pattern(pattern)
    except UnknownPatternError:
        return False
    return True


class _PatternReader:
    def __init__(self, pattern: str) -> None:
        self._pattern = pattern
        self._at = 0
        z3 = solver_library()
        self._sort = z3.ReSort(z3.StringSort())

    @property
    def at_end(self) -> bool:
        """True if the whole pattern was read."""
        return self._at >= len(self._pattern)

    def _peek(self) -> str:
        return self._pattern[self._at : self._at + 1]

    def _take(self, text: str) -> bool:
        if not text or not self._pattern.startswith(text, self._at):
            return False
        self._at += len(text)
        return True

    def _next(self) -> str:
        char = self._peek()
        if not char:
            raise UnknownPatternError(self._pattern)
        self._at += 1
        return char

    def alternatives(self, *, top: bool = False) -> Any:
        """Return what the alternatives up to a closing parenthesis match; at the top, anywhere in a text."""
        z3 = solver_library()
        parts = [self._sequence(top=top)]
        while self._take("|"):
            parts.append(self._sequence(top=top))
        return parts[0] if len(parts) == 1 else z3.Union(*parts)

    def _sequence(self, *, top: bool) -> Any:
        z3 = solver_library()
        anything = z3.Full(self._sort)
        is_start = top and self._take("^")
        parts = [] if is_start or not top else [anything]
        parts.extend(self._items())
        is_end = top and self._take("$")
        if is_end and self._peek() not in ("", "|"):
            raise UnknownPatternError(self._pattern)
        if top and not is_end:
            parts.append(anything)
        if not parts:
            return z3.Re(string(""))
        return parts[0] if len(parts) == 1 else z3.Concat(*parts)

    def _items(self) -> Iterator[Any]:
        while self._peek() and self._peek() not in "|)$":
            yield self._repeated(self._atom())

    def _atom(self) -> Any:
        char = self._next()
        if char == "(":
            return self._group()
        if char == "[":
            return self._ranges(self._class())
        if char == ".":
            return self._ranges(_complement(((_NEWLINE, _NEWLINE),)))
        if char == "\\":
            return self._ranges(self._escape())
        if char in "^*+?{}])":
            raise UnknownPatternError(self._pattern)
        return self._ranges(((ord(char), ord(char)),))

    def _group(self) -> Any:
        if self._peek() == "?" and not self._take("?:"):
            raise UnknownPatternError(self._pattern)
        inner = self.alternatives()
        if not self._take(")"):
            raise UnknownPatternError(self._pattern)
        return inner

    def _escape(self) -> Ranges:
        char = self._next()
        if char in _ESCAPED:
            return _ESCAPED[char]
        if char in _NEGATED:
            return _complement(_NEGATED[char])
        if char in _SPECIAL or not (char.isalnum() or ord(char) > 127):
            return ((ord(char), ord(char)),)
        raise UnknownPatternError(self._pattern)

    def _class(self) -> Ranges:
        negated = self._take("^")
        found: list[tuple[int, int]] = []
        while not found or self._peek() != "]":
            found.extend(self._class_part())
        self._next()
        return _complement(tuple(found)) if negated else tuple(found)

    def _class_part(self) -> Ranges:
        char = self._next()
        if char == "[" and self._peek() == ":":
            raise UnknownPatternError(self._pattern)
        first = self._escape() if char == "\\" else ((ord(char), ord(char)),)
        if self._peek() != "-" or self._pattern[self._at + 1 : self._at + 2] == "]":
            return first
        self._next()
        char = self._next()
        last = self._escape() if char == "\\" else ((ord(char), ord(char)),)
        if len(first) != 1 or len(last) != 1 or first[0][0] != first[0][1] or last[0][0] < first[0][0]:
            raise UnknownPatternError(self._pattern)
        return ((first[0][0], last[0][1]),)

    def _repeated(self, atom: Any) -> Any:
        z3 = solver_library()
        repeat = {"*": z3.Star, "+": z3.Plus, "?": z3.Option}.get(self._peek())
        if repeat is not None:
            self._next()
            found = repeat(atom)
        elif self._take("{"):
            found = z3.Loop(atom, *self._counts())
        else:
            return atom
        # A lazy repetition matches the same texts; one of a repetition is refused.
        self._take("?")
        if self._peek() and self._peek() in "*+{?":
            raise UnknownPatternError(self._pattern)
        return found

    def _counts(self) -> tuple[int, int]:
        end = self._pattern.find("}", self._at)
        least, comma, most = self._pattern[self._at : max(end, self._at)].partition(",")
        if not least.isdigit() or (comma and not most.isdigit()):
            raise UnknownPatternError(self._pattern)
        self._at = end + 1
        counts = int(least), int(most or least)
        if counts[0] > counts[1] or counts[1] > MAX_REPEATS or counts[1] == 0:
            raise UnknownPatternError(self._pattern)
        return counts

    def _ranges(self, ranges: Ranges) -> Any:
        z3 = solver_library()
        if not ranges or any(last > _LAST for _, last in ranges):
            raise UnknownPatternError(self._pattern)
        parts = [z3.Range(string(chr(first)), string(chr(last))) for first, last in ranges]
        return parts[0] if len(parts) == 1 else z3.Union(*parts)


def _complement(ranges: Ranges) -> Ranges:
    """Return all other characters."""
    found, start = [], 0
    for first, last in sorted(ranges):
        if first > start:
            found.append((start, first - 1))
        start = max(start, last + 1)
    return (*found, (start, _LAST)) if start <= _LAST else tuple(found)
