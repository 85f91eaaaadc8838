"""Client library of qwed: clients, offline verification, tool-call checkpoints, guards and a result cache."""

from typing import TYPE_CHECKING

from qwed.model.lazy_import import lazy_names

if TYPE_CHECKING:
    from qwed.guards.tool_approval import ToolApprovalSystem
    from qwed_sdk.agent import QWEDAgentClient, QWEDAsyncAgentClient
    from qwed_sdk.attestation import verify_attestation, verify_message_attestation, verify_receipt
    from qwed_sdk.cache import CacheContext, VerificationCache
    from qwed_sdk.client import QWEDAsyncClient, QWEDClient
    from qwed_sdk.errors import (
        ActionDenied,
        ActionPending,
        QWEDArgumentError,
        QWEDAuthError,
        QWEDConflictError,
        QWEDConnectionError,
        QWEDError,
        QWEDNotFoundError,
        QWEDProtocolError,
        QWEDRateLimitError,
        QWEDRequestError,
        QWEDServerError,
        QWEDTimeoutError,
    )
    from qwed_sdk.permits import Permit, Refusal
    from qwed_sdk.tool_guard import Checkpoint

# Each name is imported when it is first used: a program that needs one guard does not pay for the client.
_MODULE_OF_NAME = {
    "ActionDenied": "qwed_sdk.errors",
    "ActionPending": "qwed_sdk.errors",
    "CacheContext": "qwed_sdk.cache",
    "Checkpoint": "qwed_sdk.tool_guard",
    "Permit": "qwed_sdk.permits",
    "QWEDAgentClient": "qwed_sdk.agent",
    "QWEDArgumentError": "qwed_sdk.errors",
    "QWEDAsyncAgentClient": "qwed_sdk.agent",
    "QWEDAsyncClient": "qwed_sdk.client",
    "QWEDAuthError": "qwed_sdk.errors",
    "QWEDClient": "qwed_sdk.client",
    "QWEDConflictError": "qwed_sdk.errors",
    "QWEDConnectionError": "qwed_sdk.errors",
    "QWEDError": "qwed_sdk.errors",
    "QWEDNotFoundError": "qwed_sdk.errors",
    "QWEDProtocolError": "qwed_sdk.errors",
    "QWEDRateLimitError": "qwed_sdk.errors",
    "QWEDRequestError": "qwed_sdk.errors",
    "QWEDServerError": "qwed_sdk.errors",
    "QWEDTimeoutError": "qwed_sdk.errors",
    "Refusal": "qwed_sdk.permits",
    "ToolApprovalSystem": "qwed.guards.tool_approval",
    "VerificationCache": "qwed_sdk.cache",
    "verify_attestation": "qwed_sdk.attestation",
    "verify_message_attestation": "qwed_sdk.attestation",
    "verify_receipt": "qwed_sdk.attestation",
}

__all__ = [
    "ActionDenied",
    "ActionPending",
    "CacheContext",
    "Checkpoint",
    "Permit",
    "QWEDAgentClient",
    "QWEDArgumentError",
    "QWEDAsyncAgentClient",
    "QWEDAsyncClient",
    "QWEDAuthError",
    "QWEDClient",
    "QWEDConflictError",
    "QWEDConnectionError",
    "QWEDError",
    "QWEDNotFoundError",
    "QWEDProtocolError",
    "QWEDRateLimitError",
    "QWEDRequestError",
    "QWEDServerError",
    "QWEDTimeoutError",
    "Refusal",
    "ToolApprovalSystem",
    "VerificationCache",
    "verify_attestation",
    "verify_message_attestation",
    "verify_receipt",
]

__getattr__, __dir__ = lazy_names(__name__, _MODULE_OF_NAME)
