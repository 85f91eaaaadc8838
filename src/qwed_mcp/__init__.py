"""The MCP side: verified execution in a sandbox, and a guard that stands before any MCP server."""
