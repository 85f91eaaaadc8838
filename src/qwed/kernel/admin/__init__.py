"""Administration: organisations, keys, approvals, tool registry, webhooks and events."""
