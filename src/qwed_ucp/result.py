"""What the verifier of commerce answers: a finding of each guard, and what they come to together."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from qwed.packs.result import Result
from qwed.words import Record


@dataclass(frozen=True, kw_only=True)
class GuardFinding(Record):
    """What one guard found."""

    guard_name: str
    verified: bool
    error: str | None = None
    details: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class UCPResult(Result):
    """What all guards found; `error` is the first thing that is wrong."""

    guards: tuple[GuardFinding, ...] = ()
    error: str | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.verified and self.error is None:
            object.__setattr__(self, "error", self.message)
