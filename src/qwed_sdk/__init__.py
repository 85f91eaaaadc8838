"""The client side of qwed: what a program that talks to a control plane, or embeds its guards, imports."""

from qwed.guards.tool_approval import ToolApprovalSystem

__all__ = ["ToolApprovalSystem"]
