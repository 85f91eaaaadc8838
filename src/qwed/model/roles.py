"""Roles of API keys (ruling 4.18). A role may do only what names it."""

OWNER, APPROVER, MEMBER, METRICS = "owner", "approver", "member", "metrics"
ROLES = (OWNER, APPROVER, MEMBER, METRICS)
CALLER_ROLES = frozenset({OWNER, APPROVER, MEMBER})
"""Roles of people and programs. `metrics` only reads the server's metrics."""
