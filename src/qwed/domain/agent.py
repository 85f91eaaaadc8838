"""Stored agents and API keys: identity, permissions, budget limits, labels."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cached_property
from hashlib import sha256

import msgspec

from qwed.guards.tool_approval import case_key, fold_name
from qwed.model import Trust, sha256_of
from qwed.model.tool_name import possible_tool_names, server_of, server_of_wildcard

MAX_NAME_LENGTH = 256


class AgentStatus(StrEnum):
    """Status of an agent."""

    ACTIVE = "active"
    SUSPENDED = "suspended"
    RETIRED = "retired"
    """Out of use for good: its record is kept, and its name stays taken."""


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
    labels: Mapping[str, str] = field(default_factory=dict, hash=False)
    """Words of an owner about the agent, such as its team; policies read them."""
    max_conversation_steps: int | None = None
    """Steps of one conversation; None for the server's setting."""
    registered_trust: Trust = Trust.UNTRUSTED
    """Level of the registration."""
    restorable_trust: Trust = Trust.UNTRUSTED
    """Level up to which lost trust is restored: that of the registration, or a lower one that a person set since."""
    retired_at: float | None = None

    @property
    def name_key(self) -> str:
        """Digest by which the name is found, whatever its case and form."""
        return name_key_of(self.name)

    def is_called(self, text: str) -> bool:
        """Return True if the text is the id or the name of the agent."""
        return text == self.agent_id or (len(text) <= MAX_NAME_LENGTH and name_key_of(text) == self.name_key)

    def steps_limit(self, default: int) -> int:
        """Return how many steps a conversation of the agent may have."""
        return default if self.max_conversation_steps is None else self.max_conversation_steps

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
    def _allowed_names(self) -> frozenset[str]:
        """Allowed tools, in any case."""
        return frozenset(case_key(name) for name in self.permissions.allowed_tools or () if "*" not in name)

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
        """Return True if the list names the tool in any case, or all tools of its server."""
        if self.allowed_tools is None or case_key(tool) in self._allowed_names:
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


_AGENT_ID = re.compile(r"agent_[0-9a-f]{24}")


def is_agent_id(text: str) -> bool:
    """Return True if the text has the form of an agent's id; no name has it."""
    return _AGENT_ID.fullmatch(text) is not None


def name_key_of(name: str) -> str:
    """Return the digest of a name, the same for every case and compatibility form; a digest, so that it is short."""
    return sha256(fold_name(name).encode("utf-8", "surrogatepass")).hexdigest()


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
