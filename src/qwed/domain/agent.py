"""Stored agents and API keys: identity, permissions, budget limits."""

from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property

import msgspec

from qwed.guards.tool_approval import fold_name
from qwed.model import Trust, sha256_of
from qwed.model.tool_name import possible_tool_names, server_of, server_of_wildcard


class AgentStatus(StrEnum):
    """Status of an agent."""

    ACTIVE = "active"
    SUSPENDED = "suspended"


class Permissions(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Permissions of an agent (spec 3.1, ruling 4.22). An absent list means no limit; an empty one allows nothing."""

    allowed_engines: tuple[str, ...] | None = None
    allowed_tools: tuple[str, ...] | None = None
    blocked_tools: tuple[str, ...] = ()
    max_rows: int | None = None
    allowed_tables: tuple[str, ...] | None = None
    allowed_columns: tuple[str, ...] | None = None
    sensitive_columns: tuple[str, ...] | None = None
    schema_ddl: str | None = None
    dialect: str | None = None
    allowed_functions: tuple[str, ...] | None = None
    allowed_paths: tuple[str, ...] | None = None
    allowed_domains: tuple[str, ...] | None = None
    tolerances: tuple[str, ...] | None = None
    """How far a request may loosen the judgement of its claim; nothing by default."""


class AgentLimits(msgspec.Struct, frozen=True, kw_only=True):
    """Budget limits of an agent (spec 6.1), money in micro-dollars; None means no limit."""

    daily_cost: int | None = None
    cost_per_request: int | None = None
    requests_per_hour: int | None = None
    requests_per_day: int | None = None
    tokens_per_request: int | None = None
    tokens_per_day: int | None = None
    tool_calls_per_hour: int | None = None
    high_risk_calls_per_day: int | None = None


@dataclass(frozen=True, kw_only=True)
class Agent:
    """Registered agent at one moment; a change makes a new instance."""

    agent_id: str
    organisation_id: str
    name: str
    type: str
    principal_id: str
    trust: Trust
    status: AgentStatus
    permissions: Permissions
    limits: AgentLimits
    token_prefix: str
    token_digest: bytes
    created_at: float
    description: str | None = None
    framework: str | None = None
    model: str | None = None
    registered_by: str | None = None
    """Key that registered the agent; None for an agent stored before keys were recorded."""
    registered_trust: Trust = Trust.TRUSTED
    """Level of the registration: at a lower level no policy allows anything."""

    @cached_property
    def allowed_engines(self) -> frozenset[str] | None:
        """Allowed engines, or None for all."""
        named = self.permissions.allowed_engines
        return None if named is None else frozenset(named)

    @cached_property
    def allowed_tools(self) -> frozenset[str] | None:
        """Allowed tools, or None for all."""
        named = self.permissions.allowed_tools
        return None if named is None else frozenset(named)

    @cached_property
    def _allowed_servers(self) -> frozenset[str]:
        return frozenset(filter(None, map(server_of_wildcard, self.permissions.allowed_tools or ())))

    @cached_property
    def _blocked_tools(self) -> frozenset[str]:
        """Blocked names, case-folded so that no spelling gets past."""
        return frozenset(map(fold_name, self.permissions.blocked_tools))

    @cached_property
    def _blocked_servers(self) -> frozenset[str]:
        return frozenset(filter(None, map(server_of_wildcard, self._blocked_tools)))

    def allows(self, tool: str) -> bool:
        """Return True if the list names the tool, or all tools of its server."""
        allowed = self.allowed_tools
        if allowed is None or (tool in allowed and "*" not in tool):
            return True
        return bool(self._allowed_servers) and server_of(tool) in self._allowed_servers

    def blocks(self, tool: str) -> bool:
        """Return True if the tool is blocked by its full name, by its name on its server, or with its server."""
        blocked = self._blocked_tools
        if not blocked:
            return False
        name = fold_name(tool)
        if name in blocked or not blocked.isdisjoint(possible_tool_names(name)):
            return True
        return any(name.startswith(f"mcp__{server}__") for server in self._blocked_servers)

    @cached_property
    def _policy_hashes(self) -> dict[str, tuple[msgspec.Struct, str | None, str]]:
        return {}

    def policy_hash(
        self, tool: str, tool_row: msgspec.Struct, settings_version: str, policies: str | None = None
    ) -> str:
        """Return the SHA-256 of all that this agent is judged by (DESIGN 7); cached per tool definition.

        `policies` is the digest of the organisation's policy set, None without one.
        """
        row, of_policies, digest = self._policy_hashes.get(tool, (None, None, ""))
        if row != tool_row or of_policies != policies:
            policy = {
                "permissions": msgspec.to_builtins(self.permissions),
                "trust_level": int(self.trust),
                "tool": msgspec.to_builtins(tool_row),
                "settings": settings_version,
                **({} if policies is None else {"policies": policies}),
            }
            digest = sha256_of(policy)
            self._policy_hashes[tool] = (tool_row, policies, digest)
        return digest


@dataclass(frozen=True, kw_only=True, slots=True)
class Key:
    """API key of an organisation, without its secret."""

    key_id: str
    organisation_id: str
    name: str
    role: str
    prefix: str
    digest: bytes
    created_at: float
    revoked_at: float | None = None
    approver_groups: tuple[str, ...] = ()
    """Groups in whose name the key approves, sorted."""
