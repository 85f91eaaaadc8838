"""A report that knows what the names of Python's libraries do."""

import re

from qwed.guards._python.attributes import INNER, PLAIN_PRIVATE, WALKS
from qwed.guards._python.tables import BUILTINS, HARMLESS, RULES, TOLD_OF, UNKNOWN, Rule, words
from qwed.guards.code_words import Danger, Report
from qwed.guards.path import resolve
from qwed.words import EffectKind

_ADDRESS = re.compile(r"(?i)(?!file:)[a-z][a-z0-9+.-]*://")
_PRIVATE = re.compile(r"_(?!_)[a-z0-9]|__[a-z]\w*(?<!__)$")


_PURE = words("""
heapq statistics collections functools abc weakref string random operator itertools math enum datetime _strptime decimal
json re struct bisect textwrap _collections_abc _thread calendar html csv fractions numbers contextlib queue threading
email typing argparse ipaddress difflib lzma bz2 zlib
""")
"""Libraries whose private names only compute."""


class PythonReport(Report):
    """Findings in Python source."""

    def judged(self, path: str, rule: Rule, line: int, targets: list[str]) -> None:
        """What a library name stands for, done to `targets` in turn."""
        if rule.danger is not None:
            self.danger(rule.danger, path.rpartition("().")[2], line)
        if rule.danger is Danger.PROCESS:
            self.effect(EffectKind.EXECUTE, path.rpartition("().")[2], line)
        for index, kind in enumerate(rule.effects):
            unknown = kind is EffectKind.UNRESOLVED
            first = targets[min(index, len(targets) - 1)] if targets and not unknown else ""
            self.deed(kind, first or path, line)
            for other in targets:
                if other != first and resolve(other, None).sensitive:
                    self.deed(kind, other, line)

    def deed(self, kind: EffectKind, target: str, line: int) -> None:
        """An effect; what reads an address reads the network."""
        fetched = kind is EffectKind.READ and _ADDRESS.match(target)
        self.effect(EffectKind.NETWORK if fetched else kind, target, line)


def rule_of(path: str) -> Rule:
    """The row of the longest prefix of `path`; unknown where there is none."""
    if "()" in path:
        return RULES.get(path, HARMLESS)
    here = path
    while here:
        if here in RULES:
            rule = _private(path, path[len(here) :], RULES[here])
            return _elsewhere(path) if rule == HARMLESS and here != path else rule
        here = here.rpartition(".")[0]
    return HARMLESS if path.partition(".")[0] in BUILTINS else UNKNOWN


def _elsewhere(path: str) -> Rule:
    """The row of the same thing at another place: `asyncio.streams.open_connection`, `pathlib.Path.touch(a_path)`."""
    above, _, last = path.rpartition(".")
    if last not in TOLD_OF.get(path.partition(".")[0], ()):
        return HARMLESS
    while above:
        for place in (f"{above}().{last}", f"{above}.{last}"):
            if place in RULES:
                return RULES[place]
        above = above.rpartition(".")[0]
    return HARMLESS


def _private(path: str, rest: str, rule: Rule) -> Rule:
    """A library's private function or module is no interface: nobody knows what it leads to."""
    parts = rest.split(".")
    if rule.danger is not None:
        return rule
    if any(part in INNER or part in WALKS for part in parts):
        return Rule(danger=Danger.REFLECT)
    hidden = any(_PRIVATE.match(part) and part not in PLAIN_PRIVATE for part in parts)
    return UNKNOWN if hidden and path.partition(".")[0] not in _PURE else rule
