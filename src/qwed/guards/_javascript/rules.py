"""Building blocks of the JavaScript rule tables."""

from dataclasses import dataclass

from qwed.guards.code_findings import ViolationKind
from qwed.model import EffectKind
from qwed.model.data_files import read_rules


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


def read_rule_file(name: str) -> dict[str, Rule]:
    """Return the rules of a data file."""
    return {path: _rule(kind) for path, kind in read_rules(__file__, name).items()}


def _rule(kind: str) -> Rule:
    if kind in ViolationKind.__members__:
        return Rule(violation=ViolationKind[kind])
    if kind in ("HARMLESS", "UNKNOWN"):
        return HARMLESS if kind == "HARMLESS" else UNKNOWN
    return Rule(effect=EffectKind[kind])
