"""The client side of qwed: what a program that talks to a control plane, or embeds its guards, imports."""

from qwed.guards.tool_approval import ToolApprovalSystem
from qwed_sdk.attestation import verify_attestation, verify_receipt

__all__ = ["ToolApprovalSystem", "verify_attestation", "verify_receipt"]
