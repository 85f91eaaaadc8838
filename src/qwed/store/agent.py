"""What is kept about an agent: who it is, what it may do, what it may spend."""

from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property

import msgspec

from qwed.guards.tool_approval import folded
from qwed.words import Trust, sha256_of
from qwed.words.tool_name import readings, server_in, server_of


class AgentStatus(StrEnum):
    """Whether an agent may act at all."""

    ACTIVE = "active"
    SUSPENDED = "suspended"


class Permissions(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Spec 3.1 and ruling 4.22. An absent list means no limit of that kind; an empty one means nothing."""

    allowed_engines: tuple[str, ...] | None = None
    allowed_tools: tuple[str, ...] | None = None
    blocked_tools: tuple[str, ...] = ()
    max_rows: int | None = None
    allowed_tables: tuple[str, ...] | None = None
    allowed_columns: tuple[str, ...] | None = None
    sensitive_columns: tuple[str, ...] | None = None
    schema_ddl: str | None = None
    allowed_paths: tuple[str, ...] | None = None
    allowed_domains: tuple[str, ...] | None = None


class Limits(msgspec.Struct, frozen=True, kw_only=True):
    """Spec 6.1, the `max_` half, money in micro-dollars; None is no limit."""

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
    """One registered agent, as it stood at some moment; a change makes a new one."""

    agent_id: str
    organisation_id: str
    name: str
    type: str
    principal_id: str
    trust: Trust
    status: AgentStatus
    permissions: Permissions
    limits: Limits
    token_prefix: str
    token_digest: bytes
    created_at: float
    description: str | None = None
    framework: str | None = None
    model: str | None = None

    @cached_property
    def allowed_engines(self) -> frozenset[str] | None:
        """The whole list of engines, where one was given."""
        named = self.permissions.allowed_engines
        return None if named is None else frozenset(named)

    @cached_property
    def allowed_tools(self) -> frozenset[str] | None:
        """The whole list of tools, where one was given."""
        named = self.permissions.allowed_tools
        return None if named is None else frozenset(named)

    @cached_property
    def _allowed_servers(self) -> frozenset[str]:
        return frozenset(filter(None, map(server_in, self.permissions.allowed_tools or ())))

    @cached_property
    def _blocked_tools(self) -> frozenset[str]:
        """The blocked names, folded: no spelling of one gets past."""
        return frozenset(map(folded, self.permissions.blocked_tools))

    @cached_property
    def _blocked_servers(self) -> frozenset[str]:
        return frozenset(filter(None, map(server_in, self._blocked_tools)))

    def allows(self, tool: str) -> bool:
        """Whether the list names the tool, or all tools of the server whose tool it is."""
        allowed = self.allowed_tools
        if allowed is None or (tool in allowed and "*" not in tool):
            return True
        return bool(self._allowed_servers) and server_of(tool) in self._allowed_servers

    def blocks(self, tool: str) -> bool:
        """Whether the tool is blocked: by its whole name, by the name its server gives it, or with its server."""
        blocked = self._blocked_tools
        if not blocked:
            return False
        name = folded(tool)
        if name in blocked or not blocked.isdisjoint(readings(name)):
            return True
        return any(name.startswith(f"mcp__{server}__") for server in self._blocked_servers)

    @cached_property
    def _policy_hashes(self) -> dict[str, tuple[msgspec.Struct, str]]:
        return {}

    def policy_hash(self, tool: str, tool_row: msgspec.Struct, settings_version: str) -> str:
        """DESIGN 7: SHA-256 of what this agent was judged by; computed once for each tool as it is described."""
        row, known = self._policy_hashes.get(tool, (None, ""))
        if row != tool_row:
            policy = {
                "permissions": msgspec.to_builtins(self.permissions),
                "trust_level": int(self.trust),
                "tool": msgspec.to_builtins(tool_row),
                "settings": settings_version,
            }
            known = sha256_of(policy)
            self._policy_hashes[tool] = (tool_row, known)
        return known


@dataclass(frozen=True, kw_only=True, slots=True)
class Key:
    """An API key of an organisation, without its secret."""

    key_id: str
    organisation_id: str
    name: str
    role: str
    prefix: str
    digest: bytes
    created_at: float
    revoked_at: float | None = None
