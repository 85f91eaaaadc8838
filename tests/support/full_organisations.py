"""Organisations with data of every kind, and a plausible request body for every route."""

import itertools
import re
from dataclasses import dataclass, field
from typing import Any

import httpx

from tests.support.agent_names import unique_name

ROLES = ("owner", "approver", "member")
SHARED_TOOL = "shared_lookup"
"""Name that every tenant gives one of its own tools."""

_numbers = itertools.count(1)

_REASON = {"reason": "it was looked at"}
_SETTLE = {"reason": "it was looked at", "approver": "someone"}

BODIES: dict[str, Any] = {
    "register_agent": {"name": "another one", "principal_id": "user_9", "trust_level": 2},
    "list_agents": None,
    "get_agent": None,
    "edit_agent": {"budget": {"max_requests_per_day": 1000}},
    "retire_agent": None,
    "get_did": None,
    "verify": {"action": {"type": "calculate", "query": "2+2"}},
    "verify_tool": {"parameters": {"order": 7}},
    "get_action": None,
    "report_execution": {"success": True, "result": {"rows": 3}},
    "get_activity": None,
    "get_compliance_report": None,
    "get_budget": None,
    "change_trust": {"request": "trust_elevation", "to_level": 2, "justification": "30 days of safe operation"},
    "suspend": _REASON,
    "file_complaint": _REASON,
    "reactivate": _REASON,
    "rotate_token": None,
    "suspend_all": _REASON,
    "reactivate_all": _REASON,
    "list_approvals": None,
    "get_approval": None,
    "approve": _SETTLE,
    "reject": _SETTLE,
    "add_organisation": {"name": "another team"},
    "add_key": {"name": "another key", "role": "owner"},
    "list_keys": None,
    "get_own_key": None,
    "change_key": {"groups": []},
    "revoke_key": None,
    "list_changes": None,
    "put_webhook": {"url": "https://hooks.example.com/qwed", "events": ["degraded"]},
    "get_webhook": None,
    "delete_webhook": None,
    "verify_any": {"query": "2+2 = 4"},
    "verify_math": {"expression": "2+2 = 5"},
    "verify_logic": {"premises": ["All humans are mortal", "Plato is a human"], "conclusion": "Plato is mortal"},
    "verify_code": {"code": "print(sum(range(10)))"},
    "verify_sql": {"query": "SELECT id FROM orders WHERE total > 10"},
    "verify_fact": {"claim": "The plant opened in 1998", "context": "The plant opened in 1998."},
    "verify_stats": {"query": "rows = 2", "content_base64": "YQoxCjIK"},
    "verify_image": {
        "claim": "width = 1",
        "content_base64": "R0lGODlhAQABAIAAAAAAAP///yH5BAEAAAAALAAAAAABAAEAAAIBRAA7",
    },
    "verify_consensus": {"query": "2+2 = 4"},
    "verify_batch": {"items": [{"query": "2+2 = 4"}]},
    "get_batch": None,
    "intercept": {"sender_agent_id": "a passer-by", "receiver_agent_id": "the shop", "payload": {"text": "hello"}},
    "a2a_health": None,
    "a2a_metrics": None,
    "a2a_lists": None,
    "block_agent": {"agent_id": "a stranger"},
    "unblock_agent": {"agent_id": "a stranger"},
    "block_pair": {"sender": "a stranger", "receiver": "the shop"},
    "unblock_pair": {"sender": "a stranger", "receiver": "the shop"},
    "trust_agent": {"agent_id": "a friend"},
    "revoke_agent": {"agent_id": "a friend"},
    "list_tools": None,
    "delete_tool": None,
    "put_tool": {"risk_level": "low", "requires_approval": False},
    "get_policies": None,
    "put_policies": {"documents": []},
    "check_policies": {"documents": [{"text": "policy: x"}]},
    "explain_policies": {"agent_id": "a stranger", "action": {"type": "calculate", "query": "2+2"}},
    "roll_back_policies": {"version": 0},
    "list_policy_sets": None,
    "get_policy": None,
    "put_policy": {"text": "policy: x"},
    "delete_policy": None,
    "list_policy_versions": None,
    "erase_subject": {"subject": "someone who has left"},
    "audit_head": None,
    "audit_entries": None,
    "audit_inclusion": None,
    "audit_consistency": None,
    "events": None,
    "verify_attestation": {"jwt": "eyJhbGciOiJFUzI1NiJ9.e30.c2ln"},
    "get_attestation": None,
    "revoke_attestation": _REASON,
    "rotate_signing_key": _REASON,
    "jwks": None,
    "openapi": None,
    "docs": None,
    "metrics": None,
    "health": None,
    "ready": None,
}
"""Request body by operation; None for no body. A new route needs a row here before the tests can call it."""

_DECIDES = frozenset({"verify", "verify_tool"})


def body_of(operation: str, sender: str | None = None) -> Any:
    """Return the body of one request; a decision gets its own conversation, so that no loop is detected. `sender` is
    used where a token proves the sender of a message."""
    body = BODIES[operation]
    if operation == "intercept" and sender is not None:
        return {**body, "sender_agent_id": sender}
    if operation == "register_agent":
        return {**body, "name": unique_name(body["name"])}
    if operation not in _DECIDES:
        return body
    return {**body, "context": {"conversation_id": f"conv {next(_numbers)}", "step_number": 1}}


def auth_headers(key: str | None = None, token: str | None = None) -> dict[str, str]:
    """Return the headers for this key and this token."""
    headers = {} if key is None else {"X-API-Key": key}
    return headers if token is None else headers | {"Authorization": f"Bearer {token}"}


def ok(response: httpx.Response) -> dict[str, Any]:
    """Return the body of an answer that must not be a refusal."""
    assert response.status_code < 300, (str(response.request.url), response.text)
    body: dict[str, Any] = response.json()
    return body


@dataclass
class Tenant:
    """One organisation, with its keys and ids."""

    client: httpx.Client
    marker: str
    """Text that occurs in every string of this organisation and in no other's."""
    organisation_id: str
    keys: dict[str, str]
    key_ids: dict[str, str] = field(default_factory=dict)
    agents: list[str] = field(default_factory=list)
    tokens: list[str] = field(default_factory=list)
    actions: list[str] = field(default_factory=list)
    approvals: list[str] = field(default_factory=list)
    jobs: list[str] = field(default_factory=list)
    attestations: list[str] = field(default_factory=list)
    others: list[str] = field(default_factory=list)
    """Further ids, and secrets."""

    @property
    def ids(self) -> list[str]:
        """Return every value that no other organisation may see."""
        ids = [
            self.organisation_id,
            *self.key_ids.values(),
            *self.agents,
            *self.actions,
            *self.approvals,
            *self.jobs,
        ]
        return [*ids, *self.attestations, *self.keys.values(), *self.tokens, *self.others, self.marker]

    def ask(self, method: str, path: str, body: Any = None, role: str = "owner", **headers: str) -> dict[str, Any]:
        """Send a request with one of its own keys and return the answer."""
        credentials = auth_headers(self.keys[role]) | headers
        return ok(self.client.request(method, path, json=body, headers=credentials))

    def dump(self) -> dict[str, Any]:
        """Return everything its owner can read."""
        told = {path: self.ask("GET", path) for path in ("/agents?limit=1000", "/approvals?limit=1000", "/keys")}
        told |= {path: self.ask("GET", path) for path in ("/changes?limit=1000", "/webhook", "/tools", "/a2a/lists")}
        for agent in self.agents:
            for leaf in ("", "/did.json", "/budget", "/activity?kind=all&limit=1000"):
                told[agent + leaf] = self.ask("GET", f"/agents/{agent}{leaf}")
        for approval in self.approvals:
            told[approval] = self.ask("GET", f"/approvals/{approval}")
        told |= {job: self.ask("GET", f"/verify/batch/{job}") for job in self.jobs}
        told |= {each: self.ask("GET", f"/attestation/{each}") for each in self.attestations}
        for action, agent in itertools.product(self.actions, self.agents):
            response = self.client.get(f"/agents/{agent}/actions/{action}", headers=auth_headers(self.keys["owner"]))
            told[action + agent] = response.json()
        return told


def create_tenant(client: httpx.Client, landlord_key: str, marker: str) -> Tenant:
    """Create an organisation with a key of every role."""
    created = ok(client.post("/organisations", json={"name": f"team {marker}"}, headers=auth_headers(landlord_key)))
    tenant = Tenant(client, marker, created["organisation_id"], {"owner": created["owner_key"]})
    tenant.key_ids["owner"] = tenant.ask("GET", "/keys")["keys"][0]["id"]
    for role in ("approver", "member"):
        key = tenant.ask("POST", "/keys", {"name": f"{role} {marker}", "role": role})
        tenant.keys[role], tenant.key_ids[role] = key["key"], key["id"]
    return tenant


def fill_tenant(tenant: Tenant) -> Tenant:
    """Add agents, decisions of every kind, approvals, executions, tools and a webhook."""
    marker = tenant.marker
    for trust in (1, 2):
        agent = _register(tenant, trust)
        tenant.agents.append(agent["agent_id"])
        tenant.tokens.append(agent["agent_token"])
    first, second = tenant.agents
    tenant.others.append(f"lookup_{marker.lower()}")
    for name in (SHARED_TOOL, tenant.others[0]):
        tenant.ask("PUT", f"/tools/{name}", {"risk_level": "high", "requires_approval": True})
    tenant.ask("PUT", "/webhook", {"url": f"https://{marker.lower()}.example.com/told", "events": ["degraded"]})
    permitted = _decide(tenant, first, {"type": "calculate", "query": "2+2"}, key=f"retry-{marker}")
    waiting = [_decide(tenant, first, {"type": "send_email", "parameters": {"subject": marker}}) for _ in range(3)]
    _decide(tenant, first, {"type": "calculate", "query": "1/0"})
    _decide(tenant, second, {"type": "file_delete", "target": f"reports/{marker}.csv"})
    _decide(tenant, second, {"type": "calculate", "query": "2+2 = 5"})
    tenant.approvals += [answer["approval_id"] for answer in waiting]
    tenant.jobs.append(tenant.ask("POST", "/verify/batch", {"items": [{"query": f"the words of {marker}"}]})["job_id"])
    said = {"reason": f"because of {marker}"}
    tenant.ask("POST", f"/approvals/{tenant.approvals[0]}/approve", said, "approver")
    tenant.ask("POST", f"/approvals/{tenant.approvals[1]}/reject", said, "approver")
    approved = tenant.ask("GET", f"/agents/{first}/actions/{waiting[0]['action_id']}")
    tenant.attestations.append(approved["attestation_id"])
    tenant.ask("POST", f"/agents/{first}/actions/{permitted['action_id']}/execution", {"success": True})
    tenant.ask("POST", f"/agents/{second}/suspend", said, "member")
    return tenant


def _register(tenant: Tenant, trust: int) -> dict[str, Any]:
    said = {
        "name": unique_name(f"agent {tenant.marker}"),
        "principal_id": f"user {tenant.marker}",
        "description": f"works for {tenant.marker}",
        "trust_level": trust,
        "budget": {"max_daily_cost_usd": 500, "max_tokens_per_request": 4_096},
        "permissions": {"blocked_tools": ["shell_command"]},
    }
    return tenant.ask("POST", "/agents/register", said, "member")


def _decide(tenant: Tenant, agent: str, action: dict[str, Any], key: str = "") -> dict[str, Any]:
    context = {
        "conversation_id": f"{tenant.marker} {next(_numbers)}",
        "step_number": 1,
        "user_intent": f"for {tenant.marker}",
    }
    headers = {"Idempotency-Key": key} if key else {}
    body = {"action": action, "context": context}
    answer = tenant.client.post(
        f"/agents/{agent}/verify", json=body, headers=auth_headers(tenant.keys["member"]) | headers
    )
    read: dict[str, Any] = answer.json()
    tenant.actions.append(read["action_id"])
    return read


VOLATILE = re.compile(
    r"qwed_(?:live|agent|hook)_[\w-]+"
    r"|eyJ[\w-]+\.[\w-]+\.[\w-]+"
    r"|did:qwed:node:[\w-]+"
    r"|\b[a-z][a-z0-9]*_[0-9a-f]{12,}\b"
    r"|\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?Z"
    r'|(?<="latency_ms":)[0-9.e-]+|(?<="average_latency_ms":)[0-9.e-]+'
    r'|(?<="latency_us\\":)\d+|(?<="time_ms\\":)\d+'
    r"|\b[0-9a-f]{64}\b"
    r"|(?<![\w-])[\w-]{43}(?![\w-])"
)
"""Values that differ between requests or servers: ids, secrets, times, durations, hashes, signing keys."""

_OWN_PACE = frozenset({"date", "content-length", "x-ratelimit-remaining", "x-ratelimit-reset"})


def shape_of(response: httpx.Response, *asked: str) -> tuple[int, dict[str, str], str]:
    """Return an answer without volatile values and without the ids of the request."""
    text = response.text
    for one in asked:
        text = text.replace(one, "<asked>")
    headers = {name: value for name, value in response.headers.items() if name not in _OWN_PACE}
    return response.status_code, headers, VOLATILE.sub("<new>", text)
