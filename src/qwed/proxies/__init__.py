"""Shared parts of the MCP and A2A proxies: decision backend, agent identity, state directory, quarantine."""
