"""Edit of an agent by a JSON merge patch (RFC 7396): an owner anything, an approver only what narrows (ruling 4.28)."""

from collections.abc import Collection, Mapping
from dataclasses import replace
from typing import Annotated, Any, NamedTuple

import msgspec
from msgspec import UNSET, UnsetType

from qwed.domain.agent import Agent, AgentLimits, AgentStatus, Permissions
from qwed.domain.change_parts import AgentChanged
from qwed.guards.secrets import mask
from qwed.kernel.agents.etag import refuse_stale
from qwed.kernel.agents.labels import PatchedLabels, refuse_labels
from qwed.kernel.agents.names import refuse_name
from qwed.kernel.agents.narrowing import wider_fields
from qwed.kernel.agents.registration import (
    COUNT_LIMITS,
    MONEY_LIMITS,
    AgentName,
    BudgetRequest,
    ConversationSteps,
    Description,
    PermissionsRequest,
    ToolEntries,
)
from qwed.kernel.answer import Problem, problem
from qwed.kernel.audit_change import Actor, build_change, commit_change
from qwed.kernel.privacy.payload import redacted_text
from qwed.kernel.request_schema import FieldRule, RequestStruct, parse, quoted
from qwed.kernel.services import Services
from qwed.model import ErrorCode, Event, micros_from, usd_from
from qwed.model.roles import OWNER
from qwed.model.suggestions import did_you_mean

LIMIT_FIELDS = {**MONEY_LIMITS, **COUNT_LIMITS}
_PERMISSION_FIELDS = Permissions.__struct_fields__
_DEFAULT_PERMISSIONS = Permissions()
_ELSEWHERE = {
    "trust_level": "use POST /agents/{agent_id}/trust",
    "status": "use POST /agents/{agent_id}/suspend, /reactivate, or DELETE /agents/{agent_id}",
    "agent_token": "use POST /agents/{agent_id}/rotate-token",
    **dict.fromkeys(
        ("agent_id", "did", "type", "principal_id", "framework", "model", "created_at"),
        "it is fixed at the registration: register another agent",
    ),
    "etag": "send it in the header If-Match",
}
"""Fields of an agent that an edit does not change, and what does."""


class PermissionsPatch(PermissionsRequest):
    """Permissions to change; null removes a limit of that kind."""

    blocked_tools: ToolEntries | None = None  # type: ignore[assignment]  # null removes it, as it does the others


class AgentPatchRequest(RequestStruct):
    """JSON merge patch (RFC 7396) of an agent: a field that is absent stays, null removes it, a list is replaced."""

    name: AgentName | UnsetType = UNSET
    description: Description | None = None
    permissions: PermissionsPatch | None = None
    budget: Annotated[BudgetRequest, FieldRule("must be an object")] | None = None
    labels: PatchedLabels | None = None
    max_conversation_steps: ConversationSteps | None = None


class AgentPatch(NamedTuple):
    """A parsed patch: the new values, and the names of the fields that are removed."""

    values: AgentPatchRequest
    stated: Mapping[str, Collection[str]]
    """Top-level fields of the patch, each with its members."""
    removed: frozenset[str]
    """Fields and members that are null, such as `description` and `labels.team`."""

    def states(self, path: str) -> bool:
        """Return True if the patch changes or removes this field or member."""
        name, _, member = path.partition(".")
        return name in self.stated and (not member or name in self.removed or member in self.stated[name])


_FIELDS = AgentPatchRequest.__struct_fields__
_NESTED: dict[str, tuple[str, ...]] = {"permissions": _PERMISSION_FIELDS, "budget": tuple(LIMIT_FIELDS)}


def read_patch(raw: Any) -> AgentPatch | Problem:
    """Parse the patch, or return the problem with it; an unknown field is refused with the nearest known one."""
    if not isinstance(raw, Mapping):
        return _bad("the body must be an object")
    refusal = _refuse_unknown(raw)
    if refusal is not None:
        return refusal
    if "name" in raw and raw["name"] is None:
        return _bad("`name` cannot be removed: send another one")
    members = {name: value if isinstance(value, Mapping) else {} for name, value in raw.items()}
    values = {
        name: {member: inner for member, inner in value.items() if inner is not None}
        if isinstance(value, Mapping)
        else value
        for name, value in raw.items()
        if value is not None
    }
    request = parse(values, AgentPatchRequest)
    if isinstance(request, Problem):
        return request
    nulls = [name for name, value in raw.items() if value is None]
    nulls += [f"{name}.{member}" for name, value in members.items() for member in value if value[member] is None]
    return AgentPatch(request, members, frozenset(nulls))


def _refuse_unknown(raw: Mapping[str, Any]) -> Problem | None:
    for name, value in raw.items():
        if name in _ELSEWHERE:
            return _bad(f"`{name}` cannot be changed here: {_ELSEWHERE[name]}")
        if name not in _FIELDS:
            return _unknown(name, _FIELDS, "")
        known = _NESTED.get(name)
        if known is not None and isinstance(value, Mapping):
            unknown = next((member for member in value if member not in known), None)
            if unknown is not None:
                return _unknown(unknown, known, f" in `{name}`")
    return None


def _unknown(name: str, known: tuple[str, ...], where: str) -> Problem:
    return _bad(f"unknown field {quoted(name)}{where}: {did_you_mean(name, known)}known are {', '.join(known)}")


def edited(agent: Agent, patch: AgentPatch) -> Agent | Problem:
    """Return the agent with the patch applied, or the problem with the result."""
    values = patch.values
    labels = _patched_labels(agent, patch)
    message = refuse_labels(labels)
    if message is not None:
        return _bad(f"`labels`{'' if message.startswith(':') else ' '}{message}")
    return replace(
        agent,
        name=agent.name if isinstance(values.name, UnsetType) else mask(values.name),
        description=redacted_text(values.description) if patch.states("description") else agent.description,
        permissions=_patched_permissions(agent.permissions, patch),
        limits=_patched_limits(agent.limits, patch),
        labels=labels,
        max_conversation_steps=values.max_conversation_steps
        if patch.states("max_conversation_steps")
        else agent.max_conversation_steps,
    )


def _patched_labels(agent: Agent, patch: AgentPatch) -> dict[str, str]:
    if not patch.states("labels"):
        return dict(agent.labels)
    kept = {} if "labels" in patch.removed else agent.labels
    labels = {**kept, **(patch.values.labels or {})}
    left = {name: value for name, value in labels.items() if f"labels.{name}" not in patch.removed}
    return {name: value for name, value in sorted(left.items()) if value is not None}


def _patched_permissions(permissions: Permissions, patch: AgentPatch) -> Permissions:
    new = patch.values.permissions or PermissionsPatch()
    changes: dict[str, Any] = {}
    for name in _PERMISSION_FIELDS:
        if patch.states(f"permissions.{name}"):
            value = getattr(new, name)
            value = getattr(_DEFAULT_PERMISSIONS, name) if value is None else value
            changes[name] = tuple(value) if isinstance(value, list) else value
    if changes.get("schema_ddl") is not None:
        changes["schema_ddl"] = redacted_text(changes["schema_ddl"])
    return msgspec.structs.replace(permissions, **changes)


def _patched_limits(limits: AgentLimits, patch: AgentPatch) -> AgentLimits:
    new = patch.values.budget or BudgetRequest()
    changes = {}
    for name, field in LIMIT_FIELDS.items():
        if patch.states(f"budget.{name}"):
            value = getattr(new, name)
            changes[field] = micros_from(value) if name in MONEY_LIMITS and value is not None else value
    return msgspec.structs.replace(limits, **changes)


def changed_fields(before: Agent, after: Agent) -> tuple[str, ...]:
    """Return the names of the fields that differ, for the log; names of labels are not among them."""
    plain = ("name", "description", "labels", "max_conversation_steps")
    changed = [name for name in plain if getattr(before, name) != getattr(after, name)]
    changed += [
        f"permissions.{name}"
        for name in _PERMISSION_FIELDS
        if getattr(before.permissions, name) != getattr(after.permissions, name)
    ]
    changed += [
        f"budget.{name}"
        for name, field in LIMIT_FIELDS.items()
        if getattr(before.limits, field) != getattr(after.limits, field)
    ]
    return tuple(sorted(changed))


async def edit_agent(
    agent: Agent, patch: AgentPatch, if_match: str | None, actor: Actor, services: Services
) -> Agent | Problem:
    """Apply the patch and return the agent, or the problem with it."""
    refusal = refuse_retired(agent) or refuse_stale(agent, if_match)
    if refusal is not None:
        return refusal
    after = edited(agent, patch)
    if isinstance(after, Problem):
        return after
    fields = changed_fields(agent, after)
    if not fields:
        # The earlier change must be durable before it is answered.
        await services.store.durable()
        return agent
    refusal = _refuse_wider(agent, after, actor, services) or (
        refuse_name(after, services) if _renames(agent, after) else None
    )
    return refusal or await _commit_edit(agent, after, fields, actor, services)


def _renames(before: Agent, after: Agent) -> bool:
    return before.name_key != after.name_key


def _refuse_wider(before: Agent, after: Agent, actor: Actor, services: Services) -> Problem | None:
    """Return the problem of an approver whose change does not only narrow, or None."""
    if actor.role == OWNER:
        return None
    registered = services.store.tool_rows(before.organisation_id)
    wider = wider_fields(before, after, registered, services.settings.max_steps)
    if not wider:
        return None
    return problem(
        ErrorCode.ROLE_NOT_SUFFICIENT,
        f"an approver only takes away from an agent, and this changes {', '.join(f'`{name}`' for name in wider)}",
        suggestion="ask an owner, or send only what narrows: fewer tools, engines, tables or paths, lower limits",
        details={"fields": list(wider)},
    )


def refuse_retired(agent: Agent) -> Problem | None:
    """Return the problem of a change of a retired agent, or None."""
    if agent.status is not AgentStatus.RETIRED:
        return None
    message = "the agent is retired and cannot be changed"
    return problem(ErrorCode.CONFLICT, message, suggestion="register another agent")


async def _commit_edit(
    before: Agent, after: Agent, fields: tuple[str, ...], actor: Actor, services: Services
) -> Agent | Problem:
    change = build_change(
        Event.EDITED,
        actor.actor_id,
        before.organisation_id,
        services.clock.now(),
        services,
        key=services.vault.key_of_agent(before),
        agent_id=before.agent_id,
        fields=fields,
        content={"before": _values_of(before, fields), "after": _values_of(after, fields)},
        parts=(AgentChanged(before, after),),
    )
    receipt = await commit_change(change, services)
    if isinstance(receipt, Problem):
        taken = refuse_name(after, services) if _renames(before, after) else None
        return taken or receipt
    return after


def _values_of(agent: Agent, fields: tuple[str, ...]) -> dict[str, Any]:
    """Return the values of these fields, as the content of the log shows them."""
    return {field: _value_of(agent, field) for field in fields}


def _value_of(agent: Agent, field: str) -> Any:
    part, _, member = field.partition(".")
    if part == "permissions":
        return getattr(agent.permissions, member)
    if part == "budget":
        value = getattr(agent.limits, LIMIT_FIELDS[member])
        return value if value is None or member in COUNT_LIMITS else usd_from(value)
    return getattr(agent, field)


def _bad(message: str) -> Problem:
    return problem(ErrorCode.MALFORMED, message)
