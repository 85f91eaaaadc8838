"""MCP proxy that authorizes each tool call before it reaches the server."""
