"""What a look at Python source brings back: issues, effects and what stayed unknown, each once."""

from dataclasses import dataclass, field
from typing import NamedTuple

from qwed.guards._python_tables import (
    BUILTINS,
    DESCRIPTIONS,
    HARMLESS,
    RULES,
    SAFE_DUNDERS,
    SECRET_FILE,
    UNKNOWN,
    Danger,
    Rule,
)
from qwed.words import Effect, EffectKind

MAX_FINDINGS = 200
MAX_TARGET = 200


class Issue(NamedTuple):
    """One reason to refuse, with the line it stands on."""

    severity: str
    type: str
    pattern: str
    description: str
    line_number: int
    recommendation: str


@dataclass(slots=True)
class Report:
    """Findings in the order they were made."""

    issues: dict[Issue, None] = field(default_factory=dict)
    effects: dict[Effect, None] = field(default_factory=dict)
    unresolved: dict[str, None] = field(default_factory=dict)

    def danger(self, danger: Danger, pattern: str, line: int) -> None:
        """A reason to refuse."""
        if len(self.issues) < MAX_FINDINGS:
            description, recommendation = DESCRIPTIONS[danger]
            issue = Issue("critical", danger.value, pattern[:MAX_TARGET], description, line, recommendation)
            self.issues[issue] = None

    def effect(self, kind: EffectKind, target: str) -> None:
        """Something the code would do; UNRESOLVED where we cannot say what."""
        target = target[:MAX_TARGET]
        # The gravest kinds are never the ones left out: a list cut short still holds one of each.
        if len(self.effects) >= MAX_FINDINGS and any(effect.kind is kind for effect in self.effects):
            return
        self.effects[Effect(kind, target)] = None
        if kind is EffectKind.UNRESOLVED:
            self.unresolved[target] = None
        elif kind in (EffectKind.READ, EffectKind.WRITE) and SECRET_FILE.search(target):
            self.effects[Effect(EffectKind.SECRET, target)] = None

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
