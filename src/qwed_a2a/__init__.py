"""Agent to agent: every message between agents is looked at before it reaches its recipient (seed 002)."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

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


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module `qwed_a2a` has no `{name}`")
    found = getattr(import_module(_HOME[name]), name)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return [*__all__]
