"""How the tables of JavaScript's names are written: one rule, and the rows that give it to many names."""

from dataclasses import dataclass

from qwed.guards.code_words import Danger
from qwed.words import EffectKind


@dataclass(frozen=True, slots=True)
class Rule:
    """One of: harmless, an effect, a violation, unknown."""

    effect: EffectKind | None = None
    danger: Danger | None = None


HARMLESS = Rule()
UNKNOWN = Rule(effect=EffectKind.UNRESOLVED)


def words(text: str) -> frozenset[str]:
    """The names in `text`."""
    return frozenset(text.split())


def rows(rule: Rule, names: str, prefix: str = "") -> dict[str, Rule]:
    """The same rule for each of `names`."""
    return {prefix + name: rule for name in names.split()}


def effect(kind: EffectKind, names: str, prefix: str = "") -> dict[str, Rule]:
    """Rows for names that do something to the world."""
    return rows(Rule(effect=kind), names, prefix)


def danger(kind: Danger, names: str, prefix: str = "") -> dict[str, Rule]:
    """Rows for names that are refused whoever asks."""
    return rows(Rule(danger=kind), names, prefix)
