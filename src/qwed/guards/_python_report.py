"""A report that knows what the names of Python's libraries do."""

from qwed.guards._python_tables import BUILTINS, HARMLESS, RULES, SAFE_DUNDERS, UNKNOWN, Rule
from qwed.guards.code_words import Danger, Report
from qwed.words import EffectKind


class PythonReport(Report):
    """Findings in Python source."""

    def mention(self, path: str, line: int, target: str = "") -> None:
        """Judge a library name that the code holds."""
        rule = rule_of(path)
        if rule.danger is not None:
            self.danger(rule.danger, path, line)
        if rule.effect is not None:
            unknown = rule.effect is EffectKind.UNRESOLVED
            self.effect(rule.effect, path if unknown else target or path)


def rule_of(path: str) -> Rule:
    """The row of the longest prefix of `path`; unknown where there is none."""
    here = path
    while here:
        if here in RULES:
            return _private(path[len(here) :], RULES[here])
        here = here.rpartition(".")[0]
    return HARMLESS if path.partition(".")[0] in BUILTINS else UNKNOWN


def _private(rest: str, rule: Rule) -> Rule:
    """A library's private name is no interface: nobody knows what it leads to."""
    hidden = any(part.startswith("_") and part not in SAFE_DUNDERS for part in rest.split("."))
    return Rule(danger=Danger.REFLECT) if hidden and rule.danger is None else rule
