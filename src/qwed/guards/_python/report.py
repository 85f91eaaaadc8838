"""Report that applies the rules for Python library names."""

import re

from qwed.guards._python.attributes import INTERNALS, PLAIN_PRIVATE, TRAVERSALS
from qwed.guards._python.library_rules import BUILTINS, EFFECT_NAMES, HARMLESS, RULES, UNKNOWN, Rule, cached
from qwed.guards._python.module_names import is_pure, module_of
from qwed.guards.code_findings import CodeReport, ViolationKind
from qwed.guards.path import resolve
from qwed.model import EffectKind

_ADDRESS = re.compile(r"(?i)(?!file:)[a-z][a-z0-9+.-]*://")
_PRIVATE = re.compile(r"_(?!_)[a-z0-9]|__[a-z]\w*(?<!__)$")


class PythonReport(CodeReport):
    """Findings in Python source."""

    def add_rule(self, path: str, rule: Rule, line: int, targets: list[str]) -> None:
        """Add the effects and the violation of a library name, applied to `targets` in turn."""
        self.subject = path
        if rule.violation is not None:
            self.add_violation(rule.violation, path.rpartition("().")[2], line)
        if rule.violation is ViolationKind.PROCESS:
            self.add_effect(EffectKind.EXECUTE, path.rpartition("().")[2], line)
        self.has_unknown_targets |= sum(map(bool, targets)) > len(rule.effects) > 0
        for index, kind in enumerate(rule.effects):
            unknown = kind is EffectKind.UNRESOLVED
            first = targets[min(index, len(targets) - 1)] if targets and not unknown else ""
            self.add_access(kind, first or path, line)
            for other in targets:
                if other != first and resolve(other, None).sensitive:
                    self.add_access(kind, other, line)
        self.subject = ""

    def add_access(self, kind: EffectKind, target: str, line: int) -> None:
        """Add an effect; reading a URL counts as network access."""
        fetched = kind is EffectKind.READ and _ADDRESS.match(target)
        self.add_effect(EffectKind.NETWORK if fetched else kind, target, line)


@cached
def rule_of(path: str) -> Rule:
    """Return the rule of the longest prefix of `path` that has one; a name that no table lists is unknown."""
    if "()" in path:
        return RULES.get(path, HARMLESS)
    prefix, module = _longest_rule(path), module_of(path)
    if len(module) > len(prefix):
        rule, prefix = HARMLESS if is_pure(path) else UNKNOWN, module
    elif prefix:
        rule = RULES[prefix]
    else:
        return HARMLESS if path.partition(".")[0] in BUILTINS else UNKNOWN
    rule = _private(path[len(prefix) :], rule)
    return _rule_of_alias(path, rule) if prefix != path and rule in (HARMLESS, UNKNOWN) else rule


def _longest_rule(path: str) -> str:
    prefix = path
    while prefix and prefix not in RULES:
        prefix = prefix.rpartition(".")[0]
    return prefix


def _rule_of_alias(path: str, otherwise: Rule) -> Rule:
    """Return the rule of the same thing under another path: `asyncio.streams.open_connection`,
    `pathlib.Path.touch(a_path)`."""
    above, _, last = path.rpartition(".")
    if last not in EFFECT_NAMES.get(path.partition(".")[0], ()):
        return otherwise
    while above:
        for candidate in (f"{above}().{last}", f"{above}.{last}"):
            if candidate in RULES:
                return RULES[candidate]
        above = above.rpartition(".")[0]
    return otherwise


def _private(rest: str, rule: Rule) -> Rule:
    """Return the rule for a private part of a library: unknown, because it is not an interface."""
    parts = rest.split(".")
    if rule.violation is not None:
        return rule
    if any(part in INTERNALS or part in TRAVERSALS for part in parts):
        return Rule(violation=ViolationKind.REFLECT)
    hidden = any(_PRIVATE.match(part) and part not in PLAIN_PRIVATE for part in parts)
    return UNKNOWN if hidden else rule
