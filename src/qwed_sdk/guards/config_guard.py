"""Secrets in configuration: files and objects that name a secret instead of holding it pass."""

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from typing import Any

from qwed.guards.secrets import find_secrets
from qwed.guards.text import UNSCANNED
from qwed.words import Record, Risk

MAX_DEPTH = 64
MAX_VALUES = 10_000
MAX_CHARACTERS = 1 << 20
MAX_PATTERNS = 50
MAX_PATTERN_LENGTH = 500
MAX_PATTERN_TEXT = 4_096
"""Characters of one value that a custom pattern is tried on."""
MAX_NAME = 64
_SHOWN = 2
_SHORTEST_SHOWN = 12

# A repetition inside a repeated group is what makes a pattern take forever.
_NESTED_REPEAT = re.compile(
    r"\([^()]*[*+}][^()]*\)\s*[*+{]|\([^()]*\|[^()]*\)\s*[*+{]|\([^()]*\([^()]*[*+}]|\\[1-9]|\(\?P="
)
_REPEATS = re.compile(r"[*+]|\{\d*,\d*\}")
_MAX_REPEATS = 6

PatternTable = Mapping[str, str] | Iterable[str] | None


@dataclass(frozen=True)
class Violation(Record):
    """One secret: the key it stands under, what it is, and enough of it to find it again."""

    path: str
    type: str
    masked: str
    message: str


@dataclass(frozen=True)
class ConfigSafety(Record):
    """Whether a configuration holds no secret, and if not where they are; `risk` is low, medium or critical."""

    verified: bool
    message: str
    risk: str
    violations: tuple[Violation, ...]


@dataclass(frozen=True)
class ScannedString(Record):
    """Whether a text holds no secret, and if not what was found."""

    verified: bool
    message: str
    risk: str
    secrets_found: tuple[Violation, ...]


class ConfigGuard:
    """Finds secrets in configuration. Custom patterns are regular expressions, by name or in a list.

    A custom pattern may not repeat a group that repeats or chooses, nor refer back: such patterns can take forever.
    One that is refused raises ValueError here, and never later.
    """

    def __init__(self, custom_patterns: PatternTable = None) -> None:
        self._patterns = _compiled(custom_patterns)

    def verify_config_safety(self, data: Any) -> ConfigSafety:
        """Every secret in a nested configuration of mappings, lists, texts and bytes, or in one written as JSON."""
        # A key that is said twice has one value once it is read: the text is looked at as well.
        violations = self._within(_written(data)) or self._within(data)
        return ConfigSafety(not violations, _message(violations), _risk(violations), tuple(violations))

    def _within(self, data: Any) -> list[Violation]:
        violations: list[Violation] = []
        for path, value in _values(data):
            violations += [_unread(path)] if value is None else self._found(path, value)
        return violations

    def scan_string(self, text: str | bytes) -> ScannedString:
        """Every secret in a text: a file, a line, a value."""
        if not isinstance(text, str | bytes | bytearray):
            found = [_unread("", "it is no text")]
        else:
            found = self._found("", _decoded(text))
        return ScannedString(not found, _message(found), _risk(found), tuple(found))

    def _found(self, path: str, text: str) -> list[Violation]:
        found = [
            _unread(path) if each.kind == UNSCANNED else _violation(path, each.kind, text[each.start : each.end])
            for each in find_secrets(text)
        ]
        if not found:
            found = _told_by_name(path, text)
        return found + list(self._custom(path, text))

    def _custom(self, path: str, text: str) -> Iterator[Violation]:
        for name, pattern in self._patterns:
            match = pattern.search(text, 0, MAX_PATTERN_TEXT)
            if match and match[0]:
                yield _violation(path, name, match[0])
        if self._patterns and len(text) > MAX_PATTERN_TEXT:
            yield _unread(
                path, f"custom patterns are tried on {MAX_PATTERN_TEXT} characters of a value, and it is longer"
            )


def _compiled(custom: PatternTable) -> tuple[tuple[str, re.Pattern[str]], ...]:
    if isinstance(custom, str | bytes):
        raise ValueError("custom patterns must be a mapping of names to patterns, or a list of patterns")
    named = list(custom.items()) if isinstance(custom, Mapping) else [("custom", each) for each in custom or ()]
    if len(named) > MAX_PATTERNS:
        raise ValueError(f"more than {MAX_PATTERNS} custom patterns")
    return tuple((str(name)[:MAX_NAME], _pattern(source)) for name, source in named)


def _pattern(source: Any) -> re.Pattern[str]:
    text = source.pattern if isinstance(source, re.Pattern) else source
    if not isinstance(text, str) or not text or len(text) > MAX_PATTERN_LENGTH:
        raise ValueError(f"a custom pattern must be a text of 1 to {MAX_PATTERN_LENGTH} characters")
    if _NESTED_REPEAT.search(text) or len(_REPEATS.findall(text)) > _MAX_REPEATS:
        raise ValueError(f"`{text[:MAX_NAME]}` may take forever: do not repeat a group that repeats or chooses")
    try:
        return re.compile(text)
    except (re.error, OverflowError, RecursionError) as problem:
        raise ValueError(f"`{text[:MAX_NAME]}` is no regular expression: {problem}") from problem


def _written(data: Any) -> Any:
    """What a text of JSON says, None for anything else."""
    if not isinstance(data, str | bytes | bytearray) or len(data) > MAX_CHARACTERS:
        return None
    try:
        return json.loads(data)
    except (ValueError, RecursionError):
        return None


def _values(data: Any) -> Iterator[tuple[str, str | None]]:
    """(path, text) of every value and every name; the text is None where a bound cut the walk short."""
    waiting: list[tuple[str, Any, int]] = [("", data, 0)]
    seen = characters = 0
    while waiting:
        path, value, depth = waiting.pop()
        seen += 1
        if seen > MAX_VALUES or depth > MAX_DEPTH or characters > MAX_CHARACTERS:
            yield path, None
            return
        if isinstance(value, str | bytes | bytearray):
            text = _decoded(value)
            characters += len(text)
            yield path, text
        elif isinstance(value, Mapping | list | tuple | set | frozenset):
            waiting += reversed(list(_members(path, value, depth + 1)))
        elif isinstance(value, int | float) and not isinstance(value, bool):
            yield path, str(value)


def _members(path: str, value: Any, depth: int) -> Iterator[tuple[str, Any, int]]:
    if not isinstance(value, Mapping):
        yield from ((f"{path}[{index}]", item, depth) for index, item in enumerate(islice(value, MAX_VALUES + 1)))
        return
    for name, held in islice(value.items(), MAX_VALUES + 1):
        shown = _shown_name(name)
        yield f"{path}.{shown}" if path else shown, held, depth
        if isinstance(name, str) and len(name) > _SHORTEST_SHOWN:
            yield path, name, depth


def _shown_name(name: Any) -> str:
    """A key as a path shows it; a secret may stand in the place of a key."""
    text = name if isinstance(name, str) else f"{name}" if isinstance(name, int | float) else type(name).__name__
    return "[secret]" if find_secrets(text) else text[:MAX_NAME]


def _decoded(text: str | bytes | bytearray) -> str:
    return text if isinstance(text, str) else bytes(text).decode("utf-8", "replace")


def _told_by_name(path: str, text: str) -> list[Violation]:
    """A value that only its key makes a secret."""
    name = next((part for part in reversed(re.split(r"[.\[\]]+", path)) if part and not part.isdigit()), "")
    found = find_secrets(f'{name} = "{text}"') if name and text else ()
    return [_violation(path, each.kind, text) for each in found[:1] if each.kind != UNSCANNED]


def _violation(path: str, kind: str, secret: str) -> Violation:
    where = f"`{path}`" if path else "the text"
    return Violation(path, kind, _masked(secret), f"{where} holds a secret ({kind}): name it by reference instead")


def _unread(path: str, reason: str = "it is larger or deeper than is looked at") -> Violation:
    where = f"`{path}`" if path else "the text"
    return Violation(path, UNSCANNED, "", f"{where} was not looked at: {reason}")


def _masked(secret: str) -> str:
    """The first characters of a long secret, none of a short one."""
    shown = secret[:_SHOWN] if len(secret) >= _SHORTEST_SHOWN and secret.isprintable() else ""
    return f"{shown}***"


def _message(found: list[Violation]) -> str:
    if not found:
        return "no secret found"
    return found[0].message if len(found) == 1 else f"{len(found)} found: {found[0].message}"


def _risk(found: list[Violation]) -> str:
    if not found:
        return Risk.LOW.word
    return (Risk.MEDIUM if all(each.type == UNSCANNED for each in found) else Risk.CRITICAL).word
