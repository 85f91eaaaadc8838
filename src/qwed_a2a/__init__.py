"""Agent to agent: every message between agents is looked at before it reaches its recipient (seed 002)."""

from typing import TYPE_CHECKING

from qwed.words.lazy import lazily
from qwed_a2a.config import InterceptorConfig
from qwed_a2a.verdict import EngineName, VerdictStatus, VerificationVerdict

if TYPE_CHECKING:
    from qwed_a2a.attestation import verify_attestation
    from qwed_a2a.boundary import TrustBoundary
    from qwed_a2a.interceptor import A2AVerificationInterceptor
    from qwed_a2a.message import AgentMessage, PayloadType

# Each of these is imported when it is first used: whoever checks an attestation needs no engine and no Pydantic.
_HOME = {
    "A2AVerificationInterceptor": "qwed_a2a.interceptor",
    "AgentMessage": "qwed_a2a.message",
    "PayloadType": "qwed_a2a.message",
    "TrustBoundary": "qwed_a2a.boundary",
    "verify_attestation": "qwed_a2a.attestation",
}

__all__ = [
    "A2AVerificationInterceptor",
    "AgentMessage",
    "EngineName",
    "InterceptorConfig",
    "PayloadType",
    "TrustBoundary",
    "VerdictStatus",
    "VerificationVerdict",
    "verify_attestation",
]

__getattr__ = lazily(__name__, _HOME)


def __dir__() -> list[str]:
    return [*__all__]
