"""The tool approval system under its published name."""

from qwed.guards.tool_approval import ToolApproval, ToolApprovalSystem

__all__ = ["ToolApproval", "ToolApprovalSystem"]
