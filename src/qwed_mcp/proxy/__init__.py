"""What stands before an MCP server of others: each call walks through the kernel before it reaches the server."""
