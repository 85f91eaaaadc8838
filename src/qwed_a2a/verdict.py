"""Verdict on a message."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Any

from qwed.kernel.a2a.message import EngineName
from qwed.model import Record
from qwed.model.clock import rfc3339


class VerdictStatus(StrEnum):
    """Result for a message; anything but FORWARDED is refused."""

    FORWARDED = "forwarded"
    BLOCKED = "blocked"
    ERROR = "error"
    """No verdict could be given, stored or signed: never forwarded."""


@dataclass(frozen=True, kw_only=True)
class VerificationVerdict(Record):
    """Signed verdict on one message."""

    status: VerdictStatus
    reason: str
    audit_trace_id: str
    attestation_jwt: str | None
    engine_used: EngineName
    verified_at: datetime
    details: Mapping[str, Any] = field(default_factory=dict)

    @property
    def forwarded(self) -> bool:
        """True if the message may reach its recipient."""
        return self.status is VerdictStatus.FORWARDED

    def to_dict(self) -> dict[str, Any]:
        """Return its members as JSON values, with the time in UTC."""
        return {**self, "details": dict(self.details), "verified_at": rfc3339(self.verified_at.timestamp())}
