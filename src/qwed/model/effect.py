"""Effects of an action, reported by engines, guards and tools, and the risk derived from them."""

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum

from qwed.model.decision import Risk


class EffectKind(StrEnum):
    """Kind of change or access that an action causes."""

    READ = "READ"
    WRITE = "WRITE"
    DELETE = "DELETE"
    EXECUTE = "EXECUTE"
    NETWORK = "NETWORK"
    COMMUNICATE = "COMMUNICATE"
    SPEND = "SPEND"
    ADMIN = "ADMIN"
    SECRET = "SECRET"  # noqa: S105 - an effect, not a password
    UNRESOLVED = "UNRESOLVED"


FILE_EFFECTS = frozenset({EffectKind.READ, EffectKind.WRITE, EffectKind.DELETE})
"""Effects on files; the target is a path unless stated otherwise."""

OUTBOUND = frozenset({EffectKind.COMMUNICATE, EffectKind.NETWORK})
"""Effects that send data out of the organisation."""

RISK_OF: dict[EffectKind, Risk] = {
    EffectKind.READ: Risk.LOW,
    EffectKind.COMMUNICATE: Risk.MEDIUM,
    EffectKind.NETWORK: Risk.MEDIUM,
    EffectKind.WRITE: Risk.HIGH,
    EffectKind.DELETE: Risk.CRITICAL,
    EffectKind.EXECUTE: Risk.CRITICAL,
    EffectKind.ADMIN: Risk.CRITICAL,
    EffectKind.SECRET: Risk.CRITICAL,
    EffectKind.SPEND: Risk.CRITICAL,
    EffectKind.UNRESOLVED: Risk.CRITICAL,
}


@dataclass(frozen=True, slots=True)
class Effect:
    """One effect of an action and its target."""

    kind: EffectKind
    target: str = ""
    unbounded: bool = False
    """True for a write that names no rows or a secret that names no variable: all of them are affected."""

    @property
    def risk(self) -> Risk:
        """Risk of this effect alone."""
        return Risk.CRITICAL if self.unbounded else RISK_OF[self.kind]


def risk_of(effects: Iterable[Effect]) -> Risk:
    """Return the highest risk of the effects, or LOW if there are none."""
    return max((effect.risk for effect in effects), default=Risk.LOW)
