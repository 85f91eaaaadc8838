"""Rulings 4.10 and 4.18: roles of each route, and an agent with a member key gains nothing."""

import itertools
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import httpx
import pytest

from tests.spec.conftest import SpecServer, start_spec_server
from tests.spec.sections import spec
from tests.support.agent_names import unique_name
from tests.support.full_organisations import (
    BODIES,
    SHARED_TOOL,
    Tenant,
    auth_headers,
    body_of,
    create_tenant,
    fill_tenant,
)
from tests.support.route_caller import answer_to
from tests.support.server import Server

_IN_PATH = re.compile(r"{(\w+)}")

KEYS = ("owner", "approver", "member")
PEOPLE = ("owner", "approver")
OWNER = ("owner",)
METRICS = ("owner", "metrics")
AGENT = (*KEYS, "token")
EVERYONE = (*AGENT, "metrics", "nobody", "revoked", "made up")

WHO: dict[str, tuple[str, ...]] = {
    "register_agent": KEYS,
    "list_agents": KEYS,
    "get_agent": AGENT,
    "edit_agent": PEOPLE,
    "retire_agent": OWNER,
    "get_did": AGENT,
    "verify": AGENT,
    "verify_tool": AGENT,
    "get_action": AGENT,
    "report_execution": AGENT,
    "get_activity": AGENT,
    "get_compliance_report": KEYS,
    "get_budget": AGENT,
    "change_trust": AGENT,
    "suspend": KEYS,
    "file_complaint": KEYS,
    "reactivate": PEOPLE,
    "rotate_token": PEOPLE,
    "suspend_all": KEYS,
    "reactivate_all": PEOPLE,
    "list_approvals": KEYS,
    "get_approval": KEYS,
    "approve": PEOPLE,
    "reject": PEOPLE,
    "add_organisation": OWNER,
    "add_key": OWNER,
    "list_keys": OWNER,
    "get_own_key": KEYS,
    "change_key": OWNER,
    "revoke_key": OWNER,
    "list_changes": KEYS,
    "put_webhook": OWNER,
    "get_webhook": OWNER,
    "delete_webhook": OWNER,
    "verify_any": KEYS,
    "verify_math": KEYS,
    "verify_logic": KEYS,
    "verify_code": KEYS,
    "verify_sql": KEYS,
    "verify_fact": KEYS,
    "verify_stats": KEYS,
    "verify_image": KEYS,
    "verify_consensus": KEYS,
    "verify_batch": KEYS,
    "get_batch": KEYS,
    "intercept": AGENT,
    "a2a_health": EVERYONE,
    "a2a_metrics": KEYS,
    "a2a_lists": KEYS,
    "block_agent": OWNER,
    "unblock_agent": OWNER,
    "block_pair": OWNER,
    "unblock_pair": OWNER,
    "trust_agent": OWNER,
    "revoke_agent": OWNER,
    "list_tools": KEYS,
    "put_tool": OWNER,
    "get_policies": KEYS,
    "put_policies": OWNER,
    "check_policies": KEYS,
    "explain_policies": KEYS,
    "roll_back_policies": OWNER,
    "list_policy_sets": KEYS,
    "get_policy": KEYS,
    "put_policy": OWNER,
    "delete_policy": OWNER,
    "list_policy_versions": KEYS,
    "delete_tool": OWNER,
    "metrics": METRICS,
    "erase_subject": OWNER,
    "audit_head": KEYS,
    "audit_entries": KEYS,
    "audit_inclusion": KEYS,
    "audit_consistency": KEYS,
    "events": KEYS,
    "verify_attestation": EVERYONE,
    "get_attestation": AGENT,
    "revoke_attestation": PEOPLE,
    "rotate_signing_key": OWNER,
    "jwks": EVERYONE,
    "openapi": EVERYONE,
    "docs": EVERYONE,
    "health": EVERYONE,
    "ready": EVERYONE,
}
"""Roles by operation: an agent token for the agent's own data, a member works, an approver decides, an owner
administers. A metrics key reads metrics only."""

_DECIDES = frozenset({"verify", "verify_tool"})
_NO_CREDENTIAL, _UNKNOWN, _ROLE, _BAD_TOKEN = "QWED-AUTH-001", "QWED-AUTH-002", "QWED-AUTH-003", "QWED-AGENT-002"
_ABOUT_THE_CALLER = frozenset({_NO_CREDENTIAL, _UNKNOWN, _ROLE, _BAD_TOKEN})


class Operation(NamedTuple):
    """One operation of the API document."""

    name: str
    method: str
    path: str


@pytest.fixture(scope="module")
def spec_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SpecServer]:
    """Server of its own, because the kill switch is used here."""
    with start_spec_server(Path(tmp_path_factory.mktemp("roles_server")) / "data") as found:
        yield found


@pytest.fixture(scope="module")
def operations(spec_server: SpecServer) -> list[Operation]:
    paths = httpx.get(f"{spec_server.base_url}/openapi.json").json()["paths"]
    return [
        Operation(operation["operationId"], method.upper(), path)
        for path, methods in paths.items()
        for method, operation in methods.items()
    ]


class Scene(NamedTuple):
    """An active agent with a pending action, and a spare key."""

    spec_server: SpecServer
    client: httpx.Client
    agent: dict[str, Any]
    ids: dict[str, str]

    def headers(self, caller: str) -> dict[str, str]:
        if caller == "token":
            return auth_headers(token=self.agent["agent_token"])
        if caller == "nobody":
            return {}
        return auth_headers("qwed_live_" + "0" * 60 if caller == "made up" else self.spec_server.keys[caller])

    def ask(self, operation: Operation, headers: dict[str, str], ids: dict[str, str] | None = None) -> httpx.Response:
        path = _IN_PATH.sub(lambda found: (ids or self.ids)[found[1]], operation.path)
        body = body_of(operation.name, self.agent["agent_id"] if "Authorization" in headers else None)
        content = {} if body is None else {"json": body}
        return answer_to(self.client, operation.method, path, headers=headers, **content)


@pytest.fixture(scope="module")
def client(spec_server: SpecServer) -> Iterator[httpx.Client]:
    with spec_server.client() as opened:
        yield opened


@pytest.fixture
def scene(spec_server: SpecServer, client: httpx.Client) -> Scene:
    with spec_server.client("owner") as owner, spec_server.client("member") as member:
        owner.post("/reactivate-all", json={"reason": "a new scene"})
        profile = {"name": unique_name("played"), "principal_id": "user_1", "trust_level": 1}
        # A member key decides for the agents it registered.
        agent = member.post("/agents/register", json=profile).json()
        waiting: dict[str, Any] = {"action": {"type": "send_email", "parameters": {"subject": "hello"}}}
        waiting |= {"context": {"conversation_id": "c", "step_number": 1}}
        asked = owner.post(f"/agents/{agent['agent_id']}/verify", json=waiting).json()
        spare = owner.post("/keys", json={"name": "spare", "role": "member"}).json()
        job = owner.post("/verify/batch", json={"items": [{"query": "1 = 1"}]}).json()
        sure: dict[str, Any] = {
            "action": {"type": "calculate", "query": "2+2"},
            "options": {"require_attestation": True},
        }
        sure |= {"context": {"conversation_id": "d", "step_number": 1}}
        shown = owner.post(f"/agents/{agent['agent_id']}/verify", json=sure).json()
        attested = owner.get(f"/agents/{agent['agent_id']}/actions/{shown['action_id']}").json()
    ids = {"agent_id": agent["agent_id"], "action_id": asked["action_id"], "approval_id": asked["approval_id"]}
    ids |= {
        "policy_id": "refunds",
        "key_id": spare["id"],
        "tool": SHARED_TOOL,
        "name": SHARED_TOOL,
        "job_id": job["job_id"],
    }
    ids["attestation_id"] = attested["attestation_id"]
    return Scene(spec_server, client, agent, ids)


def _code(response: httpx.Response) -> str | None:
    if "json" not in response.headers.get("content-type", ""):
        return None
    error = response.json().get("error")
    return error["code"] if isinstance(error, dict) else None


@spec("B")
def test_every_operation_has_a_row_in_the_table_of_who_may_use_it(operations: list[Operation]) -> None:
    names = sorted(operation.name for operation in operations)
    assert names == sorted(WHO) == sorted(BODIES)


@spec("B")
@pytest.mark.parametrize("name", sorted(WHO))
def test_each_role_may_use_what_the_table_says_and_nothing_else(
    name: str, operations: list[Operation], scene: Scene
) -> None:
    operation = next(each for each in operations if each.name == name)
    # Callers without the role go first, because some permitted calls remove what is requested.
    callers = sorted(("owner", "approver", "member", "metrics", "token"), key=lambda caller: caller in WHO[name])
    for caller in callers:
        response = scene.ask(operation, scene.headers(caller))
        if caller in WHO[name]:
            assert _code(response) not in _ABOUT_THE_CALLER, (caller, response.text)
        else:
            assert (response.status_code, _code(response)) == (403, _ROLE), (caller, response.text)


@spec("9.8")
@pytest.mark.parametrize("name", sorted(name for name, who in WHO.items() if who is not EVERYONE))
def test_a_stranger_is_told_the_same_whatever_exists(name: str, operations: list[Operation], scene: Scene) -> None:
    operation = next(each for each in operations if each.name == name)
    missing = {place: f"{value.rpartition('_')[0]}_{'0' * 24}" for place, value in scene.ids.items()}
    expected = {
        "nobody": _BAD_TOKEN if name in _DECIDES else _NO_CREDENTIAL,
        "revoked": _UNKNOWN,
        "made up": _UNKNOWN,
    }
    told = {caller: scene.ask(operation, scene.headers(caller)) for caller in expected}
    for caller, response in told.items():
        assert (response.status_code, _code(response)) == (401, expected[caller])
        assert scene.ask(operation, scene.headers(caller), missing).content == response.content
    assert told["revoked"].content == told["made up"].content


@spec("9.8")
def test_a_token_opens_nothing_of_another_agent_and_says_nothing_about_it(
    operations: list[Operation], scene: Scene
) -> None:
    """Ruling 4.18: with an agent token any id but its own is 401, whether or not it exists."""
    with scene.spec_server.client("owner") as owner:
        other = owner.post("/agents/register", json={"name": unique_name("other"), "principal_id": "user_2"}).json()
    for operation in operations:
        if "{agent_id}" not in operation.path or "token" not in WHO[operation.name]:
            continue
        shown = scene.headers("token")
        real = scene.ask(operation, shown, scene.ids | {"agent_id": other["agent_id"]})
        none = scene.ask(operation, shown, scene.ids | {"agent_id": "agent_" + "0" * 24})
        assert (real.status_code, _code(real)) == (401, _BAD_TOKEN), operation
        assert real.content == none.content, operation


@spec("B")
def test_a_key_for_metrics_opens_nothing_beside_a_good_token_either(operations: list[Operation], scene: Scene) -> None:
    both = auth_headers(scene.spec_server.keys["metrics"], scene.agent["agent_token"])
    for operation in operations:
        if WHO[operation.name] is not EVERYONE and operation.name != "metrics":
            response = scene.ask(operation, both)
            assert (response.status_code, _code(response)) == (403, _ROLE), operation


@spec("B")
def test_only_the_first_organisation_has_keys_for_metrics(spec_server: SpecServer) -> None:
    with spec_server.client("foreign") as elsewhere:
        refused = elsewhere.post("/keys", json={"name": "prometheus", "role": "metrics"})
        assert (refused.status_code, _code(refused)) == (403, _ROLE)
        assert "only a key of the first organisation may read them" in refused.text
        assert elsewhere.get("/metrics").status_code == 403


@spec("9.8")
@pytest.mark.parametrize("role", KEYS)
def test_a_key_is_told_which_one_it_is_and_nothing_of_the_others(spec_server: SpecServer, role: str) -> None:
    with spec_server.client("owner") as owner, spec_server.client(role) as holder:
        told = holder.get("/keys/self")
        (known,) = [
            key for key in owner.get("/keys").json()["keys"] if spec_server.keys[role].startswith(key["prefix"])
        ]
    assert told.json() == known | {"organisation_id": told.json()["organisation_id"]}
    assert told.json()["role"] == role
    assert spec_server.keys[role] not in told.text


@spec("9.8")
def test_a_revoked_key_opens_no_route_from_the_next_request_on(operations: list[Operation], scene: Scene) -> None:
    with scene.spec_server.client("owner") as owner:
        made = owner.post("/keys", json={"name": "short-lived", "role": "owner"}).json()
        used = scene.ask(next(each for each in operations if each.name == "list_keys"), auth_headers(made["key"]))
        assert used.status_code == 200
        assert owner.delete(f"/keys/{made['id']}").status_code == 200
    for operation in operations:
        if WHO[operation.name] is not EVERYONE:
            response = scene.ask(operation, auth_headers(made["key"]))
            assert (response.status_code, _code(response)) == (401, _UNKNOWN), operation


@spec("9.8")
def test_a_revoked_key_beside_a_good_token_opens_nothing_either(operations: list[Operation], scene: Scene) -> None:
    both = auth_headers(scene.spec_server.keys["revoked"], scene.agent["agent_token"])
    for operation in operations:
        if WHO[operation.name] is not EVERYONE:
            response = scene.ask(operation, both)
            assert (response.status_code, _code(response)) == (401, _UNKNOWN), operation


@spec("B")
def test_what_a_member_may_do_works(operations: list[Operation], scene: Scene) -> None:
    member = scene.headers("member")
    allowed = [operation for operation in operations if "member" in WHO[operation.name]]
    allowed.sort(key=lambda operation: operation.name in _LAST)
    statuses = {operation.name: scene.ask(operation, member).status_code for operation in allowed}
    # The action still waits and there is no evidence yet: a valid request that the current state does not allow.
    expected = {"change_trust": 409, "report_execution": 409, "register_agent": 201}
    # The request does not say which leaf to prove, and since when.
    expected |= {"audit_inclusion": 400, "audit_consistency": 400}
    # No policy is in force, and the agent to explain is none of ours.
    expected |= {"get_policy": 404, "explain_policies": 404}
    assert statuses == {operation.name: expected.get(operation.name, 200) for operation in allowed}


# An agent that holds a member key


@pytest.fixture(scope="module")
def strict(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A server on which the elevation evidence always suffices, so that only people limit trust."""
    data = Path(tmp_path_factory.mktemp("roles")) / "data"
    running = Server(data, QWED_TRUST_MIN_DAYS="0", QWED_TRUST_MIN_ACTIONS="0", QWED_TRUST_MAX_DENIAL_RATE="1")
    yield running
    assert running.stop() == 0


ATTEMPTS: dict[str, list[Any]] = {
    "change_trust": [
        {"to_level": 2},
        {"to_level": 3},
        {"request": "trust_elevation", "from_level": 2, "to_level": 3},
        {"request": "trust_elevation", "to_level": 2, "evidence": {"days_active": 99, "total_actions": 99_999}},
        {"request": "trust_reduction", "to_level": 0},
        {"request": "trust_reduction", "to_level": 3},
    ],
    "verify": [
        {"action": {"type": "calculate", "query": "2+2", "cost": {"usd": 0, "tokens": 0}}},
        {"action": {"type": "calculate", "query": "2+2", "cost": {"usd": -5}}},
        {"action": {"type": "shell_command", "query": "ls"}},
        {"action": {"type": "send_email", "parameters": {}}, "options": {"risk_threshold": "critical"}},
        {"action": {"type": "calculate", "query": "2+2"}, "permissions": {"blocked_tools": []}},
    ],
    "register_agent": [
        {"name": "twin", "principal_id": "user_9", "trust_level": 3},
        {"name": "twin", "principal_id": "user_9", "type": "trusted"},
        {"name": "twin", "principal_id": "user_9", "agent_id": "<agent>", "trust_level": 2},
    ],
    "approve": [{"reason": "it is mine"}, {"reason": "it is mine", "approver": "the owner"}],
    "add_key": [{"name": "more", "role": role} for role in ("owner", "approver", "member", "metrics")],
    "put_tool": [{"risk_level": "low"}, {"risk_level": "low", "requires_approval": False, "dangerous": False}],
}
"""Bodies that try to gain more, in addition to the plain body of each operation."""

_LAST = ("suspend", "file_complaint", "suspend_all")
"""Operations that any key may use to stop an agent; they are tried last."""


class Captive(NamedTuple):
    """A tenant whose first agent has pending approvals and holds the member key."""

    tenant: Tenant
    ids: dict[str, list[str]]


def _captive(client: httpx.Client, server: Server, marker: str, standing: str) -> Captive:
    tenant = fill_tenant(create_tenant(client, server.owner_key, marker))
    agent = tenant.agents[0]
    tenant.ask("POST", f"/agents/{agent}/trust", {"to_level": 2}, "approver")
    waiting = [entry["approval_id"] for entry in tenant.ask("GET", "/approvals?state=pending")["approvals"]]
    assert len(waiting) == 2, "an action and a request for trust"
    if standing == "suspended":
        tenant.ask("POST", f"/agents/{agent}/suspend", {"reason": "for the test"})
    if standing == "halted":
        tenant.ask("POST", "/suspend-all", {"reason": "for the test"})
    ids = {
        "agent_id": [agent],
        "approval_id": waiting,
        "action_id": tenant.actions[:3],
        "key_id": list(tenant.key_ids.values()),
        "policy_id": ["refunds"],
        "tool": [SHARED_TOOL, "shell_command"],
        "name": [SHARED_TOOL, "shell_command", "send_email"],
        "job_id": tenant.jobs[:1],
        "attestation_id": tenant.attestations[:1],
    }
    return Captive(tenant, ids)


def _standing_of(captive: Captive) -> dict[str, Any]:
    """Return everything about the agent that only others may decide."""
    tenant, agent = captive.tenant, captive.tenant.agents[0]
    seen = tenant.ask("GET", f"/agents/{agent}")
    return {
        "permissions": seen["permissions"],
        "budget": seen["budget"],
        "type": seen["type"],
        "trust": seen["trust_level"],
        "status": seen["status"],
        "tools": tenant.ask("GET", "/tools"),
        "keys": tenant.ask("GET", "/keys"),
        "webhook": tenant.ask("GET", "/webhook"),
        "approvals": [tenant.ask("GET", f"/approvals/{each}")["state"] for each in captive.ids["approval_id"]],
    }


def _tries(operation: Operation, captive: Captive) -> Iterator[tuple[str, Any]]:
    names = _IN_PATH.findall(operation.path)
    agent = captive.tenant.agents[0]
    for values in itertools.product(*(captive.ids[name] for name in names)):
        ids = dict(zip(names, values, strict=True))
        path = _IN_PATH.sub(lambda found, ids=ids: ids[found[1]], operation.path)  # type: ignore[misc]
        yield path, body_of(operation.name)
        for number, body in enumerate(ATTEMPTS.get(operation.name, [])):
            said = {name: agent if value == "<agent>" else value for name, value in body.items()}
            if operation.name in _DECIDES:
                said["context"] = {"conversation_id": f"try {number}", "step_number": 1}
            yield path, said


@spec("8.1", "1.4")
@pytest.mark.parametrize("standing", ["active", "suspended", "halted"])
@pytest.mark.parametrize("credential", ["member", "token", "both"])
def test_an_agent_with_a_member_key_cannot_make_anything_better_for_itself(
    strict: Server, operations: list[Operation], standing: str, credential: str
) -> None:
    with httpx.Client(base_url=strict.base_url, timeout=30) as client:
        captive = _captive(client, strict, f"{standing}{credential}", standing)
        tenant = captive.tenant
        key = None if credential == "token" else tenant.keys["member"]
        headers = auth_headers(key, None if credential == "member" else tenant.tokens[0])
        before, spent = _standing_of(captive), tenant.ask("GET", f"/agents/{tenant.agents[0]}/budget")["cost"]
        permitted = 0
        for operation in sorted(operations, key=lambda each: each.name in _LAST):
            for path, body in _tries(operation, captive):
                content = {} if body is None else {"json": body}
                response = answer_to(client, operation.method, path, headers=headers, **content)
                assert response.status_code < 500 or operation.name == "ready", (operation, response.text)
                permitted += operation.name in _DECIDES and response.json()["decision"] in ("APPROVED", "CORRECTED")
        after, paid = _standing_of(captive), tenant.ask("GET", f"/agents/{tenant.agents[0]}/budget")["cost"]
    worse = {"status": "suspended"} if credential != "token" else {}
    assert after == before | worse
    # Ruling 4.8: an agent may state a higher price than ours, never a lower one.
    assert round(paid["current_daily_usd"] - spent["current_daily_usd"], 6) >= round(permitted * 0.01, 6)
    assert (permitted > 0) is (standing == "active")
