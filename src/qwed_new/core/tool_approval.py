"""Tool approval system under its published import name."""

from qwed.guards.tool_approval import ToolApproval, ToolApprovalSystem

__all__ = ["ToolApproval", "ToolApprovalSystem"]
