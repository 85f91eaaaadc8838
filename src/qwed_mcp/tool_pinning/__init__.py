"""Pinning of a server's tool definitions: a changed or suspicious definition is quarantined."""

from qwed_mcp.tool_pinning.pin_file import PinFileError
from qwed_mcp.tool_pinning.quarantined import QuarantinedTool, ScreeningResult
from qwed_mcp.tool_pinning.registry import PinRegistry

__all__ = ["PinFileError", "PinRegistry", "QuarantinedTool", "ScreeningResult"]
