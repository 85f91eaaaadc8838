"""MCP server for verified code execution, and a proxy that guards other MCP servers."""
