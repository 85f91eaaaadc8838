"""Verification of messages between agents before they reach their recipient (seed 002)."""

from typing import TYPE_CHECKING

from qwed.kernel.a2a.message import EngineName
from qwed.model.lazy_import import lazy_names
from qwed_a2a.config import InterceptorConfig
from qwed_a2a.verdict import VerdictStatus, VerificationVerdict

if TYPE_CHECKING:
    from qwed_a2a.attestation import verify_attestation
    from qwed_a2a.interceptor import A2AVerificationInterceptor
    from qwed_a2a.message import AgentMessage, PayloadType
    from qwed_a2a.trust_boundary import TrustBoundary

# Imported on first use: checking an attestation needs no engine and no Pydantic.
_LAZY_MODULES = {
    "A2AVerificationInterceptor": "qwed_a2a.interceptor",
    "AgentMessage": "qwed_a2a.message",
    "PayloadType": "qwed_a2a.message",
    "TrustBoundary": "qwed_a2a.trust_boundary",
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

__getattr__, __dir__ = lazy_names(__name__, _LAZY_MODULES)
