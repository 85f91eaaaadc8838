"""Result of the UCP verifier: a finding of each guard and the overall status."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from qwed.model import Record
from qwed.packs.result import Result


@dataclass(frozen=True, kw_only=True)
class GuardFinding(Record):
    """Finding of one guard."""

    guard_name: str
    verified: bool
    error: str | None = None
    details: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class UCPResult(Result):
    """Findings of all guards; `error` is the first failure."""

    guards: tuple[GuardFinding, ...] = ()
    error: str | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.verified and self.error is None:
            object.__setattr__(self, "error", self.message)
