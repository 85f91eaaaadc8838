"""Building blocks of the JavaScript rule tables."""

from dataclasses import dataclass

from qwed.guards.code_findings import ViolationKind
from qwed.model import EffectKind


@dataclass(frozen=True, slots=True)
class Rule:
    """Rule for a name: harmless, an effect, a violation, or unknown."""

    effect: EffectKind | None = None
    violation: ViolationKind | None = None


HARMLESS = Rule()
UNKNOWN = Rule(effect=EffectKind.UNRESOLVED)


def words(text: str) -> frozenset[str]:
    """Return the set of names in `text`."""
    return frozenset(text.split())


def rows(rule: Rule, names: str, prefix: str = "") -> dict[str, Rule]:
    """Return the same rule for each of `names`."""
    return {prefix + name: rule for name in names.split()}


def effect_rules(kind: EffectKind, names: str, prefix: str = "") -> dict[str, Rule]:
    """Return rules for names with an effect."""
    return rows(Rule(effect=kind), names, prefix)


def violation_rules(kind: ViolationKind, names: str, prefix: str = "") -> dict[str, Rule]:
    """Return rules for names that are refused at every trust level."""
    return rows(Rule(violation=kind), names, prefix)
