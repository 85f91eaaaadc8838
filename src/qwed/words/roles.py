"""Ruling 4.18: what a key may be for. A role that is not named where something is asked for may not ask for it."""

OWNER, APPROVER, MEMBER, METRICS = "owner", "approver", "member", "metrics"
ROLES = (OWNER, APPROVER, MEMBER, METRICS)
ASKING = frozenset({OWNER, APPROVER, MEMBER})
"""Those of people and programs. The other one reads the numbers of the server, and is for what does only that."""
