"""Effects of setting variables: an allow-list of what may be in the environment of a program."""

import re
import tomllib
from functools import cache
from pathlib import Path
from typing import NamedTuple

from qwed.guards._shell.command_model import ShellReport, Violation, Word
from qwed.model import EffectKind

SAFE_PAGERS = frozenset(
    ["", "cat", "less", "more", "true", ":", "vim", "vi", "nano", "emacs", "code --wait", "less -R"]
)
"""Common pagers and editors."""
_DATA = Path(__file__).with_name("environment.toml")
_PROMPT = re.compile(r"[^$`]*")
_KINDS = {"executes": EffectKind.EXECUTE, "administers": EffectKind.ADMIN, "reaches": EffectKind.NETWORK}
_SECTIONS = ("harmless", "loads", "executes", "administers", "reaches", "shell")


class _Names(NamedTuple):
    """Names of variables, with a value each; `*` at an end of a name stands for any text."""

    whole: dict[str, str]
    prefixes: tuple[tuple[str, str], ...]
    suffixes: tuple[tuple[str, str], ...]

    def get(self, name: str) -> str:
        """Return the value of a name, or an empty text."""
        if name in self.whole:
            return self.whole[name]
        affixes = [value for prefix, value in self.prefixes if name.startswith(prefix)]
        affixes += [value for suffix, value in self.suffixes if name.endswith(suffix)]
        return affixes[0] if affixes else ""


class _Environment(NamedTuple):
    patterns: dict[str, re.Pattern[str]]
    harmless: _Names
    sections: dict[str, _Names]


@cache
def _environment() -> _Environment:
    with _DATA.open("rb") as file:
        table = tomllib.load(file)
    if set(table) != {"values", *_SECTIONS}:
        raise ValueError(f"environment.toml has the sections `{sorted(table)}`, not {sorted(_SECTIONS)}")
    patterns = {name: re.compile(text) for name, text in table["values"].items()}
    harmless = {name: value for value, names in table["harmless"].items() for name in names}
    if set(harmless.values()) - set(patterns):
        raise ValueError(f"environment.toml uses unknown values: `{sorted(set(harmless.values()) - set(patterns))}`")
    sections = {name: _names(dict.fromkeys(table[name]["names"], name)) for name in _SECTIONS[1:]}
    return _Environment(patterns, _names(harmless), sections)


def _names(rows: dict[str, str]) -> _Names:
    return _Names(
        {name: value for name, value in rows.items() if "*" not in name},
        tuple((name[:-1], value) for name, value in rows.items() if name.endswith("*")),
        tuple((name[1:], value) for name, value in rows.items() if name.startswith("*")),
    )


def environment_variables() -> list[tuple[str, str]]:
    """Return the harmless variables and what their value may be, for the documentation."""
    harmless = _environment().harmless
    affixes = [(f"{prefix}*", value) for prefix, value in harmless.prefixes]
    affixes += [(f"*{suffix}", value) for suffix, value in harmless.suffixes]
    return [*harmless.whole.items(), *affixes]


def analyze_assignment(report: ShellReport, name: str, values: list[Word], *, exported: bool) -> None:
    """Report the effects of giving a variable these values; no values if it is not known what it gets."""
    environment = _environment()
    if _is_harmless(environment, name, values):
        return
    text = " ".join(value.text for value in values)
    target = f"{name}={text}"
    if environment.sections["loads"].get(name):
        report.add_violation(Violation.ENVIRONMENT)
        report.add_effect(EffectKind.ADMIN, target)
    elif environment.sections["shell"].get(name):
        _analyze_shell_variable(report, name, values)
    elif kind := next((kind for row, kind in _KINDS.items() if environment.sections[row].get(name)), None):
        # The variable may be in the environment already.
        _report_kind(report, kind, target, text)
    elif exported:
        report.add_unresolved(f"`{name[:64]}` is not a variable that is known to be harmless to programs")


def analyze_prefix(report: ShellReport, name: str, values: list[Word]) -> None:
    """Report the effects of an assignment before a command; where its programs are found decides what it is."""
    analyze_assignment(report, name, values, exported=True)
    if name == "PATH":
        report.add_violation(Violation.ENVIRONMENT)


def analyze_removal(report: ShellReport, name: str) -> None:
    """Report the effect of removing a variable."""
    if _environment().sections["administers"].get(name):
        report.add_effect(EffectKind.ADMIN, f"{name}=")


def _report_kind(report: ShellReport, kind: EffectKind, target: str, text: str) -> None:
    if kind is EffectKind.ADMIN:
        report.add_effect(kind, target)
    elif kind is EffectKind.NETWORK and text:
        report.add_effect(kind, text)
    elif kind is EffectKind.EXECUTE:
        report.add_effect(kind, target)


def _is_harmless(environment: _Environment, name: str, values: list[Word]) -> bool:
    pattern = environment.harmless.get(name)
    if not pattern:
        return False
    if pattern == "any":
        return True
    is_number = bool(values) and all(value.is_number for value in values)
    known = bool(values) and all(value.is_exact for value in values)
    text = " ".join(value.text for value in values)
    return (known or is_number) and environment.patterns[pattern].fullmatch(text) is not None


def _analyze_shell_variable(report: ShellReport, name: str, values: list[Word]) -> None:
    """Report a change of the shell itself; a prompt may contain any text that runs nothing."""
    text = " ".join(value.text for value in values)
    is_prompt = name in ("PS0", "PS1", "PS2", "PS3")
    if is_prompt and values and _PROMPT.fullmatch(text) and all(value.is_exact for value in values):
        return
    if is_prompt and ("$(" in text or "`" in text):
        report.add_violation(Violation.ENVIRONMENT)
    report.add_unresolved(f"`{name[:64]}` changes how the shell reads the rest")
