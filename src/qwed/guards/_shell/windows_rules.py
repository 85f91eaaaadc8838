"""Effects of Windows programs: program names, PowerShell verbs, and patterns that apply anywhere in a command."""

import re
from typing import NamedTuple

from qwed.guards._shell.command_model import Violation, names_in
from qwed.model import EffectKind
from qwed.model.data_files import read_rows, read_rules, read_table

Kinds = tuple[EffectKind, ...]


def _kinds(text: str) -> Kinds:
    return () if text == "NOTHING" else tuple(EffectKind[name] for name in text.split("+"))


NAMES: dict[str, Kinds] = {name: _kinds(kinds) for name, kinds in read_rules(__file__, "windows_programs.txt").items()}
VERBS: dict[str, Kinds] = {name: _kinds(kinds) for name, kinds in read_rules(__file__, "windows_verbs.txt").items()}
ONLY_WINDOWS = names_in(read_table(__file__, "windows_commands.txt"))
"""Names that exist only on Windows."""


class WindowsPattern(NamedTuple):
    """Text with the same effects anywhere in a command."""

    pattern: re.Pattern[str]
    kinds: Kinds
    violation: Violation | None = None


_FETCH = r"(?:downloadstring|downloaddata|webclient|\biwr\b|\birm\b|\bcurl\b|\bwget\b|invoke-(?:webrequest|restmethod))"
_RUN = r"(?:\biex\b|invoke-expression)"


def _pattern(kinds: str, violation: str, pattern: str) -> WindowsPattern:
    whole = pattern.replace("{fetch}", _FETCH).replace("{run}", _RUN)
    found = None if violation == "-" else Violation[violation]
    return WindowsPattern(re.compile(whole, re.IGNORECASE | re.DOTALL), _kinds(kinds), found)


PATTERNS = tuple(_pattern(*row) for row in read_rows(__file__, "windows_patterns.txt", 3))
