"""What an action would do: the common language of engines, guards and tools, and the risk read off it."""

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum

from qwed.words.decision import Risk


class EffectKind(StrEnum):
    """Everything an action can do to the world."""

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


ON_FILES = frozenset({EffectKind.READ, EffectKind.WRITE, EffectKind.DELETE})
"""What can be done to a file; its target is a path where nothing else is said."""

LEAVING = frozenset({EffectKind.COMMUNICATE, EffectKind.NETWORK})
"""What carries something out of the house."""

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
    """One thing an action would do, and to what."""

    kind: EffectKind
    target: str = ""
    unbounded: bool = False
    """A write that names no rows, a secret that names no variable: every one of them."""

    @property
    def risk(self) -> Risk:
        """How grave this is on its own."""
        return Risk.CRITICAL if self.unbounded else RISK_OF[self.kind]


def risk_of(effects: Iterable[Effect]) -> Risk:
    """The gravest of the effects; nothing done is LOW."""
    return max((effect.risk for effect in effects), default=Risk.LOW)
