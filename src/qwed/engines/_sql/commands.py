"""Statements that the parser returns as text: their effects, derived from their first words."""

import re
from collections.abc import Iterator
from typing import NamedTuple

from qwed.engines._sql.functions import effect_of_name, file_effects
from qwed.model import Effect, EffectKind
from qwed.model.data_files import read_patterns

SHELL = "command_execution"
FILE_ACCESS = "file_access"
DANGEROUS_FUNCTION = "dangerous_function"

_MAX_LENGTH = 4_000
_MAX_NAMES = 400
"""Limits on the part of a text that is searched for words, paths and calls."""


class Command(NamedTuple):
    """Effects of a statement, and the violation if it is refused at every trust level."""

    effects: tuple[Effect, ...]
    violation: str = ""


class _Row(NamedTuple):
    start: re.Pattern[str]
    kinds: tuple[EffectKind, ...]
    violation: str = ""


def _rows() -> Iterator[_Row]:
    for heading, patterns in read_patterns(__file__, "commands.txt"):
        names, violation = heading.split("\t")
        kinds = tuple(EffectKind[name] for name in names.split("+"))
        for pattern in patterns:
            yield _Row(re.compile(pattern, re.IGNORECASE | re.DOTALL), kinds, violation.removeprefix("-"))


_ROWS = tuple(_rows())
_OUTFILE = re.compile(r"\bINTO\s+(?:OUT|DUMP)FILE\s+'(?P<path>[^']*)'", re.IGNORECASE)
_CALL = re.compile(
    r"(?<![\w$])([A-Za-z_][\w$]{2,60})\s*\(|\bEXEC(?:UTE)?\s+(?:\w+\.+){0,3}([A-Za-z_]\w{2,60})", re.IGNORECASE
)


def classify_command(text: str) -> Command | None:
    """Return the known effects of a statement, or None if its words match no row."""
    head = text.strip()[:_MAX_LENGTH]
    for row in _ROWS:
        match = row.start.match(head)
        if match:
            return Command(tuple(_effects(row, match)), row.violation)
    return None


def _effects(row: _Row, match: re.Match[str]) -> Iterator[Effect]:
    groups = match.groupdict()
    target = groups.get("path") or groups.get("name")
    for kind in row.kinds:
        if groups.get("path"):
            yield from file_effects(kind, str(target))
        else:
            reads = kind is EffectKind.READ and not target
            yield Effect(kind, "information_schema" if reads else (target or match[0].split()[0].upper()))


def dangerous_calls(text: str) -> Iterator[tuple[str, Effect]]:
    """Yield (violation, effect) for each dangerous function call in a text that does not parse."""
    names = [first or second for first, second in _CALL.findall(text[:_MAX_LENGTH])][:_MAX_NAMES]
    for name in dict.fromkeys(name.lower() for name in names):
        effect_rule = effect_of_name(name)
        if effect_rule is not None:
            yield f"{DANGEROUS_FUNCTION}:{name}", Effect(effect_rule.kind, name)
    for match in _OUTFILE.finditer(text[:_MAX_LENGTH]):
        yield from ((FILE_ACCESS, effect) for effect in file_effects(EffectKind.WRITE, match["path"]))
