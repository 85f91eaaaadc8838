"""The client side of qwed: what a program that talks to a control plane, or embeds its guards, imports."""

from typing import TYPE_CHECKING

from qwed.words.lazy import lazily

if TYPE_CHECKING:
    from qwed.guards.tool_approval import ToolApprovalSystem
    from qwed_sdk.agent import QWEDAgentClient, QWEDAsyncAgentClient
    from qwed_sdk.attestation import verify_attestation, verify_message_attestation, verify_receipt
    from qwed_sdk.cache import CacheContext, VerificationCache
    from qwed_sdk.calls.checks import Permit, Refusal
    from qwed_sdk.checkpoint import Checkpoint
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

# Each name is imported when it is first used: a program that needs one guard does not pay for the client.
_HOME = {
    "ActionDenied": "qwed_sdk.errors",
    "ActionPending": "qwed_sdk.errors",
    "CacheContext": "qwed_sdk.cache",
    "Checkpoint": "qwed_sdk.checkpoint",
    "Permit": "qwed_sdk.calls.checks",
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
    "Refusal": "qwed_sdk.calls.checks",
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

__getattr__ = lazily(__name__, _HOME)


def __dir__() -> list[str]:
    return [*__all__]
