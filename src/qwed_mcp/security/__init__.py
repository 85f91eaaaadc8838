"""Checks that run before a tool call is dispatched or a skill is loaded."""

from qwed_mcp.security.gateway import BlockedDecision, Decision, RiskBasedExecutionGateway
from qwed_mcp.security.provenance import SkillProvenanceGuard

__all__ = ["BlockedDecision", "Decision", "RiskBasedExecutionGateway", "SkillProvenanceGuard"]
