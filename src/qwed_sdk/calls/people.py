"""People and their organisation: approvals, keys, tools, the webhook."""

from collections.abc import Mapping, Sequence
from typing import Any

from qwed_sdk.calls.pages import entries_of, listed
from qwed_sdk.records import Action, Approval, Known
from qwed_sdk.wire import Call, ask, at, given


def list_approvals(state: str | None = None, agent_id: str | None = None, limit: int = 100) -> Call[list[Approval]]:
    """What waits for a person, and what became of it, newest first."""
    narrowed = {"state": state, "agent_id": agent_id}
    return [Approval(found) for found in (yield from listed("/approvals", "approvals", limit, narrowed))]


def get_approval(approval_id: str) -> Call[Approval]:
    """One approval."""
    return Approval((yield from ask("GET", at("approvals", approval_id), must_have="approval_id")))


def approve(approval_id: str, reason: str, approver: str | None = None) -> Call[Approval]:
    """Permit what waits."""
    return (yield from _resolved(approval_id, "approve", reason, approver))


def reject(approval_id: str, reason: str, approver: str | None = None) -> Call[Approval]:
    """Refuse what waits, and free what it holds."""
    return (yield from _resolved(approval_id, "reject", reason, approver))


def _resolved(approval_id: str, verb: str, reason: str, approver: str | None) -> Call[Approval]:
    body = given(reason=reason, approver=approver)
    return Approval((yield from ask("POST", at("approvals", approval_id, verb), body, must_have="approval_id")))


def create_organisation(name: str) -> Call[Known]:
    """Another organisation and, once, its owner's key; for an owner of the first one."""
    return Known((yield from ask("POST", "/organisations", {"name": name})))


def create_key(name: str, role: str = "member") -> Call[Known]:
    """A key of the organisation, shown once: `owner`, `approver`, `member` or `metrics`."""
    return Known((yield from ask("POST", "/keys", {"name": name, "role": role})))


def list_keys() -> Call[list[Known]]:
    """The organisation's keys, without their secrets."""
    return [Known(found) for found in entries_of((yield from ask("GET", "/keys")), "keys")]


def get_own_key() -> Call[Known]:
    """The key that asks: its id, name, role and `organisation_id`."""
    return Known((yield from ask("GET", "/keys/self")))


def revoke_key(key_id: str) -> Call[Known]:
    """End a key; it opens nothing any more."""
    return Known((yield from ask("DELETE", at("keys", key_id))))


def list_changes(limit: int = 100) -> Call[list[Action]]:
    """What was changed in the organisation, by whom, newest first."""
    return [Action(found) for found in (yield from listed("/changes", "changes", limit))]


def list_tools() -> Call[list[Known]]:
    """Spec 5.3: the tool registry."""
    return [Known(found) for found in entries_of((yield from ask("GET", "/tools")), "tools")]


def put_tool(name: str, risk_level: str, **fields: Any) -> Call[Known]:
    """A row of the registry, such as `requires_approval=True`."""
    return Known((yield from ask("PUT", at("tools", name), given(risk_level=risk_level, **fields))))


def set_webhook(url: str, events: Sequence[str] | None = None) -> Call[Known]:
    """Where the organisation is told what happens; the secret that signs notices is shown once."""
    body: Mapping[str, Any] = given(url=url, events=None if events is None else list(events))
    return Known((yield from ask("PUT", "/webhook", body)))


def get_webhook() -> Call[Known]:
    """The webhook, and how its notices fare."""
    return Known((yield from ask("GET", "/webhook")))


def delete_webhook() -> Call[Known]:
    """Tell nobody any more."""
    return Known((yield from ask("DELETE", "/webhook")))
