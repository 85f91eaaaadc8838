"""What an engine found out about one input."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from qwed.words.decision import Status
from qwed.words.effect import Effect


@dataclass(frozen=True, kw_only=True, slots=True)
class Verdict:
    """Status, effects and checks; `verified` is true for VERIFIED alone."""

    status: Status
    engine: str
    message: str = ""
    effects: tuple[Effect, ...] = ()
    checks_passed: tuple[str, ...] = ()
    checks_failed: tuple[str, ...] = ()
    violations: tuple[str, ...] = ()
    """Shapes refused at every trust level (dynamic code, injection, a secret leaving); these cost trust."""
    corrected: Mapping[str, Any] | None = None
    """The fields of the action that a repair replaces, such as `{"query": "2+2 = 4"}`."""
    result: Mapping[str, Any] = field(default_factory=dict)
    """The engine's own findings, JSON values only."""

    @property
    def verified(self) -> bool:
        """Whether the input was proven, nothing less."""
        return self.status is Status.VERIFIED
