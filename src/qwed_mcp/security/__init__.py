"""What decides before a tool of ours is dispatched."""

from qwed_mcp.security.gateway import Decision, Refusal, RiskBasedExecutionGateway
from qwed_mcp.security.provenance import SkillProvenanceGuard

__all__ = ["Decision", "Refusal", "RiskBasedExecutionGateway", "SkillProvenanceGuard"]
