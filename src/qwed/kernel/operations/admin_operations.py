"""Operations on approvals, organisations, keys, tools, the webhook and the A2A lists."""

import re
from typing import Annotated, Any

from msgspec import Meta

from qwed.domain.access_lists import ListName
from qwed.domain.agent import Key
from qwed.kernel.a2a import access_lists
from qwed.kernel.a2a.access_lists import AgentRequest, ListsView, PairRequest, entry_of, lists_of
from qwed.kernel.admin import approvals, organisations, tool_registry, webhook
from qwed.kernel.admin.pages import ApprovalsRequest, ApprovalsView, ChangesView, approvals_page, changes_page
from qwed.kernel.answer import Problem, problem
from qwed.kernel.operations.operation import APPROVERS, OWNER, Call, E, Operation, operation
from qwed.kernel.pagination import LogPageRequest
from qwed.kernel.request_schema import MAX_NAME_LENGTH, FieldRule, Name, Reason, RequestStruct, text_rule
from qwed.kernel.tools import Tool
from qwed.kernel.views.activity_views import ApprovalView, approval_view
from qwed.kernel.views.agent_views import View
from qwed.model.clock import rfc3339
from qwed.model.endpoints import Endpoint
from qwed.model.roles import ROLES
from qwed.store.protocol import ApprovalRecord

MAX_GROUPS = 16
GROUP_NAME = r"[a-z][a-z0-9_-]{0,63}"
_GROUPS = FieldRule(
    f"must be a list of at most {MAX_GROUPS} names in lower case, such as `finance`",
    refuse=lambda names: None if all(map(_is_group_name, names)) and len(names) <= MAX_GROUPS else "",
)
Groups = Annotated[
    tuple[str, ...],
    Meta(extra_json_schema={"maxItems": MAX_GROUPS, "items": {"type": "string", "pattern": f"^{GROUP_NAME}$"}}),
    _GROUPS,
]
"""Names of approver groups."""


def _is_group_name(name: str) -> bool:
    return re.fullmatch(GROUP_NAME, name) is not None


class ResolveRequest(RequestStruct):
    """Reason, and the name of the approver; the log records the key in any case."""

    reason: Reason
    approver: Reason | None = None


class OrganisationRequest(RequestStruct):
    """New organisation."""

    name: Name


class KeyRequest(RequestStruct):
    """New key of the organisation."""

    name: Name
    role: Annotated[str, Meta(extra_json_schema={"enum": [*ROLES]}), text_rule(MAX_NAME_LENGTH)]
    groups: Groups = ()


class KeyPatch(RequestStruct):
    """Change of a key: the groups in whose name it approves."""

    groups: Groups


class OrganisationView(View, frozen=True, kw_only=True):
    """New organisation with its owner key, shown once."""

    organisation_id: str
    name: str
    owner_key: str


class KeyView(View, frozen=True, kw_only=True):
    """Key without its secret; `prefix` is the public part by which its holder recognises it."""

    id: str
    name: str
    role: str
    prefix: str
    groups: list[str]
    created_at: str
    revoked_at: str | None


class OwnKeyView(KeyView, frozen=True, kw_only=True):
    """Key of the caller and its organisation."""

    organisation_id: str


class NewKeyView(KeyView, frozen=True, kw_only=True):
    """New key with its secret, shown once."""

    key: str


class KeysView(View, frozen=True, kw_only=True):
    """Every key of the organisation, oldest first."""

    keys: list[KeyView]


class ToolListView(View, frozen=True, kw_only=True):
    """Registered tools (spec 5.3)."""

    tools: list[Tool]


class WebhookView(View, frozen=True, kw_only=True):
    """Webhook and its delivery counters."""

    url: str
    events: list[str]
    changed_at: str
    waiting: int
    delivered: int
    given_up: int
    delivered_at: str | None
    last_error: str | None


class RemovedView(View, frozen=True, kw_only=True):
    """Result of a removal."""

    removed: bool


class AgentListedView(View, frozen=True, kw_only=True):
    """Membership of an agent in a list."""

    agent_id: str
    listed: bool


class PairListedView(View, frozen=True, kw_only=True):
    """Membership of a pair in the list."""

    sender: str
    receiver: str
    listed: bool


@operation(Endpoint.LIST_APPROVALS, "List approvals", errors=(E.AMBIGUOUS_NAME,))
def list_approvals(call: Call, request: ApprovalsRequest) -> ApprovalsView | Problem:
    """Return a page of the organisation's approvals, newest first."""
    return approvals_page(call.actor.organisation_id, request, call.services)


@operation(Endpoint.GET_APPROVAL, "Get an approval", errors=(E.NOT_FOUND,))
def get_approval(call: Call) -> ApprovalView | Problem:
    """Return one approval."""
    found = approvals.find_approval(call.path["approval_id"], call.actor.organisation_id, call.services)
    return _approval_view(found, call)


@operation(
    Endpoint.APPROVE,
    "Approve a pending action",
    roles=APPROVERS,
    errors=(E.OWN_REQUEST, E.NOT_FOUND, E.CONFLICT, E.TAMPERING_FOUND),
)
async def approve(call: Call, request: ResolveRequest) -> ApprovalView | Problem:
    """Approve a pending request."""
    comment = approvals.ApprovalComment(request.reason, request.approver)
    return _approval_view(await approvals.approve(call.path["approval_id"], comment, call.actor, call.services), call)


@operation(Endpoint.REJECT, "Reject a pending action", roles=APPROVERS, errors=(E.NOT_FOUND, E.CONFLICT))
async def reject(call: Call, request: ResolveRequest) -> ApprovalView | Problem:
    """Reject a pending request."""
    comment = approvals.ApprovalComment(request.reason, request.approver)
    return _approval_view(await approvals.reject(call.path["approval_id"], comment, call.actor, call.services), call)


def _approval_view(outcome: ApprovalRecord | Problem, call: Call) -> ApprovalView | Problem:
    return outcome if isinstance(outcome, Problem) else approval_view(outcome, call.services)


@operation(Endpoint.ADD_ORGANISATION, "Create an organisation", roles=OWNER, status=201, errors=(E.CONFLICT,))
async def add_organisation(call: Call, request: OrganisationRequest) -> OrganisationView | Problem:
    """Create an organisation; requires an owner of the first one."""
    created = await organisations.add_organisation(request.name, call.actor, call.services)
    return created if isinstance(created, Problem) else OrganisationView(**created._asdict())


def _fields(key: Key) -> dict[str, Any]:
    return {
        "id": key.key_id,
        "name": key.name,
        "role": key.role,
        "prefix": key.prefix,
        "groups": [*key.approver_groups],
        "created_at": rfc3339(key.created_at),
        "revoked_at": None if key.revoked_at is None else rfc3339(key.revoked_at),
    }


@operation(Endpoint.ADD_KEY, "Create a key", roles=OWNER, status=201, errors=(E.CONFLICT,))
async def add_key(call: Call, request: KeyRequest) -> NewKeyView | Problem:
    """Create a key of the owner's organisation."""
    created = await organisations.add_key(request.name, request.role, call.actor, call.services, request.groups)
    return created if isinstance(created, Problem) else NewKeyView(**_fields(created.key), key=created.text)


@operation(Endpoint.LIST_KEYS, "List keys", roles=OWNER)
def list_keys(call: Call) -> KeysView:
    """Return the organisation's keys."""
    return KeysView(keys=[KeyView(**_fields(key)) for key in call.services.store.list_keys(call.actor.organisation_id)])


@operation(Endpoint.GET_OWN_KEY, "Get the key of this request")
def get_own_key(call: Call) -> OwnKeyView:
    """Return the caller's key and its role."""
    organisation_id = call.actor.organisation_id
    key = next(key for key in call.services.store.list_keys(organisation_id) if key.key_id == call.actor.actor_id)
    return OwnKeyView(**_fields(key), organisation_id=organisation_id)


@operation(Endpoint.CHANGE_KEY, "Change the groups of a key", roles=OWNER, errors=(E.NOT_FOUND, E.CONFLICT))
async def change_key(call: Call, request: KeyPatch) -> KeyView | Problem:
    """Set the groups in whose name a key approves."""
    changed = await organisations.change_groups(call.path["key_id"], request.groups, call.actor, call.services)
    return changed if isinstance(changed, Problem) else KeyView(**_fields(changed))


@operation(Endpoint.REVOKE_KEY, "Revoke a key", roles=OWNER, errors=(E.NOT_FOUND, E.CONFLICT))
async def revoke_key(call: Call) -> KeyView | Problem:
    """Revoke a key."""
    revoked = await organisations.revoke_key(call.path["key_id"], call.actor, call.services)
    return revoked if isinstance(revoked, Problem) else KeyView(**_fields(revoked))


@operation(Endpoint.LIST_CHANGES, "List changes of the organisation")
def list_changes(call: Call, request: LogPageRequest) -> ChangesView:
    """Return a page of the organisation's changes, newest first."""
    return changes_page(call.actor.organisation_id, request, call.services)


@operation(Endpoint.GET_WEBHOOK, "Get the webhook and its delivery state", roles=OWNER, errors=(E.NOT_FOUND,))
def get_webhook(call: Call) -> WebhookView | Problem:
    """Return the webhook and its delivery counters, without its secret."""
    row = call.services.store.webhook_record(call.actor.organisation_id)
    if row is None:
        return problem(E.NOT_FOUND, "this organisation has no webhook")
    return WebhookView(
        url=row.url,
        events=list(row.events),
        changed_at=rfc3339(row.changed_at),
        waiting=row.waiting,
        delivered=row.delivered,
        given_up=row.given_up,
        delivered_at=None if row.delivered_at is None else rfc3339(row.delivered_at),
        last_error=row.last_error,
    )


@operation(Endpoint.DELETE_WEBHOOK, "Delete the webhook", roles=OWNER, errors=(E.NOT_FOUND, E.CONFLICT))
async def delete_webhook(call: Call) -> RemovedView | Problem:
    """Remove the webhook."""
    removed = await webhook.remove_webhook(call.actor, call.services)
    return removed if isinstance(removed, Problem) else RemovedView(removed=removed)


@operation(Endpoint.LIST_TOOLS, "List registered tools (spec 5.3)")
def list_tools(call: Call) -> ToolListView:
    """Return the built-in tools, overridden by the organisation's own."""
    return ToolListView(tools=tool_registry.tools_of(call.actor.organisation_id, call.services))


@operation(Endpoint.PUT_TOOL, "Register a tool", roles=OWNER, errors=(E.CONFLICT,))
async def put_tool(call: Call, request: tool_registry.ToolRequest) -> Tool | Problem:
    """Register a tool."""
    row = tool_registry.tool_of(call.path["name"], request)
    return row if isinstance(row, Problem) else await tool_registry.register_tool(row, call.actor, call.services)


@operation(Endpoint.DELETE_TOOL, "Delete the registration of a tool", roles=OWNER, errors=(E.NOT_FOUND, E.CONFLICT))
async def delete_tool(call: Call) -> RemovedView | Problem:
    """Delete the organisation's own definition of a tool; a built-in one applies again."""
    removed = await tool_registry.remove_tool(call.path["name"], call.actor, call.services)
    return removed if isinstance(removed, Problem) else RemovedView(removed=removed)


@operation(Endpoint.A2A_LISTS, "List blocked agents, blocked pairs and trusted agents")
def a2a_lists(call: Call) -> ListsView:
    """Return every list of the organisation."""
    return lists_of(call.actor.organisation_id, call.services)


def _list_operation(endpoint: Endpoint, summary: str, which: ListName) -> Operation:
    """Return the operation that adds an entry to a list, or with DELETE removes it."""
    listed = endpoint.method == "PUT"
    change = access_lists.put_entry if listed else access_lists.remove_entry

    async def change_agents(call: Call, request: AgentRequest) -> AgentListedView | Problem:
        stored = await change(entry_of(which, request), call.actor, call.services)
        return stored if isinstance(stored, Problem) else AgentListedView(agent_id=stored.sender, listed=listed)

    async def change_pairs(call: Call, request: PairRequest) -> PairListedView | Problem:
        entry = await change(entry_of(which, request), call.actor, call.services)
        if isinstance(entry, Problem):
            return entry
        return PairListedView(sender=entry.sender, receiver=entry.receiver, listed=listed)

    errors = (E.CONFLICT,) if listed else (E.CONFLICT, E.NOT_FOUND)
    run = change_pairs if which is ListName.PAIRS else change_agents
    return operation(endpoint, summary, roles=OWNER, errors=errors)(run)


block_agent = _list_operation(Endpoint.BLOCK_AGENT, "Block an agent", ListName.BLOCKS)
unblock_agent = _list_operation(Endpoint.UNBLOCK_AGENT, "Unblock an agent", ListName.BLOCKS)
block_pair = _list_operation(Endpoint.BLOCK_PAIR, "Block an agent from sending to another", ListName.PAIRS)
unblock_pair = _list_operation(Endpoint.UNBLOCK_PAIR, "Unblock an agent from sending to another", ListName.PAIRS)
trust_agent = _list_operation(
    Endpoint.TRUST_AGENT, "Trust an agent, so that its messages skip verification", ListName.TRUSTED
)
revoke_agent = _list_operation(Endpoint.REVOKE_AGENT, "Stop trusting an agent", ListName.TRUSTED)
