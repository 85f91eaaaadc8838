"""ConfigGuard: finds secrets in configuration; references to a secret are allowed."""

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from typing import Any

from qwed.guards.secrets import find_secrets
from qwed.guards.text_scan import UNSCANNED
from qwed.model import Record, Risk

MAX_DEPTH = 64
MAX_VALUES = 10_000
MAX_CHARACTERS = 1 << 20
MAX_PATTERNS = 50
MAX_PATTERN_LENGTH = 500
MAX_PATTERN_TEXT = 4_096
"""Characters of a value that custom patterns are applied to."""
MAX_NAME = 64
_UNMASKED_CHARS = 2
_MIN_SECRET_CHARS = 12

# Nested repetition causes catastrophic backtracking.
_NESTED_REPEAT = re.compile(
    r"\([^()]*[*+}][^()]*\)\s*[*+{]|\([^()]*\|[^()]*\)\s*[*+{]|\([^()]*\([^()]*[*+}]|\\[1-9]|\(\?P="
)
_REPEATS = re.compile(r"[*+]|\{\d*,\d*\}")
_MAX_REPEATS = 6

PatternTable = Mapping[str, str] | Iterable[str] | None


@dataclass(frozen=True)
class Violation(Record):
    """Secret in a configuration: its key path, its type, and a masked excerpt."""

    path: str
    type: str
    masked: str
    message: str


@dataclass(frozen=True)
class ConfigSafety(Record):
    """Result for a configuration; `risk` is low, medium or critical."""

    verified: bool
    message: str
    risk: str
    violations: tuple[Violation, ...]


@dataclass(frozen=True)
class ScannedString(Record):
    """Result for a text."""

    verified: bool
    message: str
    risk: str
    secrets_found: tuple[Violation, ...]


class ConfigGuard:
    """Finds secrets in configuration. Custom patterns are regular expressions, by name or in a list.

    A custom pattern may not repeat a group that repeats or has alternatives, nor use back-references, because such
    patterns can backtrack without end. The constructor raises ValueError for a pattern that is not accepted.
    """

    def __init__(self, custom_patterns: PatternTable = None) -> None:
        self._patterns = _compile_patterns(custom_patterns)

    def verify_config_safety(self, data: Any) -> ConfigSafety:
        """Find every secret in a nested configuration of mappings, lists, texts and bytes, or in a JSON text."""
        # Parsing drops all but one value of a duplicate key, so the text is scanned too.
        violations = self._scan_values(_parse_json(data)) or self._scan_values(data)
        return ConfigSafety(not violations, _message(violations), _risk(violations), tuple(violations))

    def _scan_values(self, data: Any) -> list[Violation]:
        violations: list[Violation] = []
        for path, value in _iterate_values(data):
            violations += [_unscanned(path)] if value is None else self._scan_text(path, value)
        return violations

    def scan_string(self, text: str | bytes) -> ScannedString:
        """Find every secret in a text: a file, a line, a value."""
        if not isinstance(text, str | bytes | bytearray):
            violations = [_unscanned("", "it is not text")]
        else:
            violations = self._scan_text("", _decode(text))
        return ScannedString(not violations, _message(violations), _risk(violations), tuple(violations))

    def _scan_text(self, path: str, text: str) -> list[Violation]:
        violations = [
            _unscanned(path)
            if secret.kind == UNSCANNED
            else _violation(path, secret.kind, text[secret.start : secret.end])
            for secret in find_secrets(text)
        ]
        if not violations:
            violations = _secret_by_key(path, text)
        return violations + list(self._scan_custom(path, text))

    def _scan_custom(self, path: str, text: str) -> Iterator[Violation]:
        for name, pattern in self._patterns:
            match = pattern.search(text, 0, MAX_PATTERN_TEXT)
            if match and match[0]:
                yield _violation(path, name, match[0])
        if self._patterns and len(text) > MAX_PATTERN_TEXT:
            yield _unscanned(
                path, f"custom patterns are applied to {MAX_PATTERN_TEXT} characters of a value, and it is longer"
            )


def _compile_patterns(custom: PatternTable) -> tuple[tuple[str, re.Pattern[str]], ...]:
    if isinstance(custom, str | bytes):
        raise ValueError("custom patterns must be a mapping of names to patterns, or a list of patterns")
    sources = list(custom.items()) if isinstance(custom, Mapping) else [("custom", pattern) for pattern in custom or ()]
    if len(sources) > MAX_PATTERNS:
        raise ValueError(f"more than {MAX_PATTERNS} custom patterns")
    return tuple((str(name)[:MAX_NAME], _compile_pattern(source)) for name, source in sources)


def _compile_pattern(source: Any) -> re.Pattern[str]:
    text = source.pattern if isinstance(source, re.Pattern) else source
    if not isinstance(text, str) or not text or len(text) > MAX_PATTERN_LENGTH:
        raise ValueError(f"a custom pattern must be a text of 1 to {MAX_PATTERN_LENGTH} characters")
    if _NESTED_REPEAT.search(text) or len(_REPEATS.findall(text)) > _MAX_REPEATS:
        raise ValueError(
            f"`{text[:MAX_NAME]}` may backtrack without end: do not repeat a group that repeats or has alternatives"
        )
    try:
        return re.compile(text)
    except (re.error, OverflowError, RecursionError) as problem:
        raise ValueError(f"`{text[:MAX_NAME]}` is not a valid regular expression: {problem}") from problem


def _parse_json(data: Any) -> Any:
    """Return the value of a JSON text, or None."""
    if not isinstance(data, str | bytes | bytearray) or len(data) > MAX_CHARACTERS:
        return None
    try:
        return json.loads(data)
    except (ValueError, RecursionError):
        return None


def _iterate_values(data: Any) -> Iterator[tuple[str, str | None]]:
    """Yield path and text of every value and every key; the text is None where a limit stopped the scan."""
    waiting: list[tuple[str, Any, int]] = [("", data, 0)]
    seen = characters = 0
    while waiting:
        path, value, depth = waiting.pop()
        seen += 1
        if seen > MAX_VALUES or depth > MAX_DEPTH or characters > MAX_CHARACTERS:
            yield path, None
            return
        if isinstance(value, str | bytes | bytearray):
            text = _decode(value)
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
    for name, member in islice(value.items(), MAX_VALUES + 1):
        part = _path_part(name)
        yield f"{path}.{part}" if path else part, member, depth
        if isinstance(name, str) and len(name) > _MIN_SECRET_CHARS:
            yield path, name, depth


def _path_part(name: Any) -> str:
    """Return a key as a path shows it; a key that contains a secret is replaced."""
    text = name if isinstance(name, str) else f"{name}" if isinstance(name, int | float) else type(name).__name__
    return "[secret]" if find_secrets(text) else text[:MAX_NAME]


def _decode(text: str | bytes | bytearray) -> str:
    return text if isinstance(text, str) else bytes(text).decode("utf-8", "replace")


def _secret_by_key(path: str, text: str) -> list[Violation]:
    """Return a violation for a value that is a secret because of its key."""
    name = next((part for part in reversed(re.split(r"[.\[\]]+", path)) if part and not part.isdigit()), "")
    secrets = find_secrets(f'{name} = "{text}"') if name and text else ()
    return [_violation(path, secret.kind, text) for secret in secrets[:1] if secret.kind != UNSCANNED]


def _violation(path: str, kind: str, secret: str) -> Violation:
    where = f"`{path}`" if path else "the text"
    return Violation(path, kind, _mask(secret), f"{where} contains a secret ({kind}): use a reference to it instead")


def _unscanned(path: str, reason: str = "it exceeds the limits of the scan") -> Violation:
    where = f"`{path}`" if path else "the text"
    return Violation(path, UNSCANNED, "", f"{where} was not scanned: {reason}")


def _mask(secret: str) -> str:
    """Return the first characters of a long secret, and none of a short one."""
    prefix = secret[:_UNMASKED_CHARS] if len(secret) >= _MIN_SECRET_CHARS and secret.isprintable() else ""
    return f"{prefix}***"


def _message(violations: list[Violation]) -> str:
    if not violations:
        return "no secret found"
    return violations[0].message if len(violations) == 1 else f"{len(violations)} found: {violations[0].message}"


def _risk(violations: list[Violation]) -> str:
    if not violations:
        return Risk.LOW.word
    return (Risk.MEDIUM if all(violation.type == UNSCANNED for violation in violations) else Risk.CRITICAL).word
