"""What decides before a tool of ours is dispatched."""

from qwed_mcp.security.provenance import SkillProvenanceGuard

__all__ = ["SkillProvenanceGuard"]
