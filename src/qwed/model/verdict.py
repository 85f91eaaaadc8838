"""Result of an engine for one input."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from qwed.model.decision import Status
from qwed.model.effect import Effect
from qwed.model.facts import NO_FACTS, Facts


@dataclass(frozen=True, kw_only=True, slots=True)
class Verdict:
    """Status, effects and checks of one input."""

    status: Status
    engine: str
    message: str = ""
    effects: tuple[Effect, ...] = ()
    checks_passed: tuple[str, ...] = ()
    checks_failed: tuple[str, ...] = ()
    violations: tuple[str, ...] = ()
    """Shapes refused at every trust level (dynamic code, injection, a secret leaving); they cost trust."""
    corrected: Mapping[str, Any] | None = None
    """Fields of the action that a repair replaces, such as `{"query": "2+2 = 4"}`."""
    result: Mapping[str, Any] = field(default_factory=dict)
    """The engine's own findings, JSON values only."""
    facts: Facts = NO_FACTS
    """Findings in the form that policies read."""

    @property
    def verified(self) -> bool:
        """True if the status is VERIFIED."""
        return self.status is Status.VERIFIED
