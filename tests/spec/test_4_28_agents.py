"""Ruling 4.28: agents are edited, named and retired by people; labels are an owner's word."""

import itertools
from typing import Any

import httpx
import pytest

from tests.conftest import AgentConversation
from tests.spec.conftest import CreateAgent, Keyholders, SpecServer
from tests.spec.requests import SUM, WRITE, Json, another, changes_of, question, said, settle
from tests.spec.sections import spec

_names = itertools.count(1)
BUDGET = {"max_daily_cost_usd": 5, "max_requests_per_hour": 100}
PERMISSIONS = {"allowed_tables": ["orders", "customers"], "blocked_tools": ["send_money"], "max_rows": 100}


def _edit(client: httpx.Client, agent: str, etag: str | None = None, **changes: Any) -> httpx.Response:
    headers = {} if etag is None else {"If-Match": etag}
    return client.patch(f"/agents/{agent}", json=changes, headers=headers)


def _agent(keyholders: Keyholders, **fields: Any) -> AgentConversation:
    """Register an agent with an owner's key."""
    body = {"name": f"worker {next(_names)}", "principal_id": "user_123", **fields}
    response = keyholders.owner.post("/agents/register", json=body)
    assert response.status_code == 201, response.text
    return AgentConversation(keyholders.owner, response.json())


def _stored(ask: AgentConversation) -> Json:
    agent: Json = ask.api.get(f"/agents/{ask.agent_id}").json()
    return agent


# Edit


@spec("3.1")
def test_an_owner_changes_what_an_owner_may(keyholders: Keyholders) -> None:
    ask = _agent(keyholders, permissions=PERMISSIONS, budget=BUDGET)
    name = f"renamed {next(_names)}"
    response = _edit(
        keyholders.owner,
        ask.agent_id,
        name=name,
        description="reads orders",
        permissions={"max_rows": 10, "allowed_tables": ["orders"]},
        budget={"max_daily_cost_usd": 7.5, "max_requests_per_hour": None},
        labels={"team": "support", "env": "production"},
        max_conversation_steps=80,
    )
    assert response.status_code == 200, response.text
    agent = response.json()
    assert (agent["name"], agent["description"]) == (name, "reads orders")
    assert (agent["permissions"]["max_rows"], agent["permissions"]["allowed_tables"]) == (10, ["orders"])
    assert agent["permissions"]["blocked_tools"] == ["send_money"]
    assert (agent["budget"]["max_daily_cost_usd"], agent["budget"]["max_requests_per_hour"]) == (7.5, None)
    assert (agent["labels"], agent["max_conversation_steps"]) == ({"env": "production", "team": "support"}, 80)
    assert _stored(ask) == agent


@spec("3.1")
def test_null_removes_and_what_is_absent_stays(keyholders: Keyholders) -> None:
    ask = _agent(
        keyholders, permissions=PERMISSIONS, budget=BUDGET, description="old", labels={"team": "a", "env": "b"}
    )
    changes = {"description": None, "permissions": {"allowed_tables": None}, "labels": {"env": None}}
    agent = _edit(keyholders.owner, ask.agent_id, **changes).json()
    assert (agent["description"], agent["labels"]) == (None, {"team": "a"})
    assert (agent["permissions"]["allowed_tables"], agent["permissions"]["max_rows"]) == (None, 100)
    whole = _edit(keyholders.owner, ask.agent_id, permissions=None, budget=None, labels=None).json()
    assert (whole["permissions"]["blocked_tools"], whole["permissions"]["max_rows"]) == ([], None)
    assert (set(whole["budget"].values()), whole["labels"]) == ({None}, {})


@spec("7.1")
def test_an_edit_is_a_leaf_that_names_the_fields_and_no_value(keyholders: Keyholders) -> None:
    ask = _agent(keyholders, permissions=PERMISSIONS)
    _edit(keyholders.owner, ask.agent_id, description="for Ann", labels={"team": "x"}, permissions={"max_rows": 5})
    (change,) = changes_of(ask, "edited")
    assert change["change"]["fields"] == ["description", "labels", "permissions.max_rows"]
    assert change["change"]["after"]["permissions.max_rows"] == 5
    entries = keyholders.owner.get("/audit/entries", params={"from_index": change["log_index"], "limit": 1}).json()
    leaf = str(entries["entries"][0])
    assert "permissions.max_rows" in leaf
    assert "for Ann" not in leaf


@spec("7.1")
def test_an_edit_that_changes_nothing_is_no_leaf(keyholders: Keyholders) -> None:
    ask = _agent(keyholders, description="same")
    response = _edit(keyholders.owner, ask.agent_id, description="same")
    assert (response.status_code, changes_of(ask, "edited")) == (200, [])


UNKNOWN: dict[str, tuple[Json, str]] = {
    "a misspelt field": ({"descripton": "x"}, "did you mean `description`?"),
    "a misspelt permission": ({"permissions": {"allowed_tabels": []}}, "did you mean `allowed_tables`"),
    "a misspelt limit": ({"budget": {"max_daily_cost": 1}}, "did you mean `max_daily_cost_usd`?"),
    "a removed unknown field": ({"colour": None}, "unknown field `colour`"),
    "the trust level": ({"trust_level": 3}, "POST /agents/{agent_id}/trust"),
    "the status": ({"status": "active"}, "/reactivate"),
    "the principal": ({"principal_id": "other"}, "fixed at the registration"),
    "no name": ({"name": None}, "cannot be removed"),
    "labels that are no object": ({"labels": ["team"]}, "`labels` must be an object"),
    "a label with a capital": ({"labels": {"Team": "x"}}, "`Team` cannot be used"),
    "a label with an address": ({"labels": {"owner": "ann@example.com"}}, "cannot be used"),
    "too many labels": ({"labels": {f"l{number}": "x" for number in range(33)}}, "at most 32"),
    "a secret in a label": ({"labels": {"key": "AKIAIOSFODNN0FIXTURE"}}, "carries a secret"),
    "no steps": ({"max_conversation_steps": 0}, "1 to 1000000"),
}


@spec("3.1", "A")
@pytest.mark.parametrize("name", UNKNOWN)
def test_what_cannot_be_edited_is_refused_by_name(keyholders: Keyholders, name: str) -> None:
    body, said_about_it = UNKNOWN[name]
    ask = _agent(keyholders)
    response = keyholders.owner.patch(f"/agents/{ask.agent_id}", json=body)
    assert response.status_code == 400
    assert said_about_it in response.json()["error"]["message"]
    assert changes_of(ask, "edited") == []


NARROWER: list[Json] = [
    {"permissions": {"allowed_tables": ["orders"]}},
    {"permissions": {"blocked_tools": ["send_money", "send_email"]}},
    {"permissions": {"max_rows": 10, "allowed_engines": ["sql"]}},
    {"permissions": {"allowed_paths": ["/srv/app"], "allowed_domains": ["example.com"]}},
    {"permissions": {"allowed_tools": ["send_email", "read_file"]}},
    {"budget": {"max_daily_cost_usd": 1, "max_tokens_per_day": 1000}},
    {"max_conversation_steps": 20},
]
WIDER: list[tuple[Json, str]] = [
    ({"permissions": {"allowed_tables": ["orders", "salaries"]}}, "permissions.allowed_tables"),
    ({"permissions": {"allowed_tables": None}}, "permissions.allowed_tables"),
    ({"permissions": {"blocked_tools": []}}, "permissions.blocked_tools"),
    ({"permissions": {"max_rows": 1000}}, "permissions.max_rows"),
    ({"permissions": {"allowed_tools": ["my_own_tool"]}}, "permissions.allowed_tools"),
    ({"permissions": {"sensitive_columns": []}}, "permissions.sensitive_columns"),
    ({"permissions": {"allowed_functions": ["wipe"]}}, "permissions.allowed_functions"),
    ({"budget": {"max_daily_cost_usd": 6}}, "budget.max_daily_cost_usd"),
    ({"budget": {"max_requests_per_hour": None}}, "budget.max_requests_per_hour"),
    ({"max_conversation_steps": 51}, "max_conversation_steps"),
    ({"labels": {"team": "finance"}}, "labels"),
    ({"description": "harmless"}, "description"),
    ({"name": "another name"}, "name"),
]


@spec("9.8")
@pytest.mark.parametrize("changes", NARROWER, ids=str)
def test_an_approver_narrows(keyholders: Keyholders, changes: Json) -> None:
    ask = _agent(keyholders, permissions=PERMISSIONS, budget=BUDGET)
    assert _edit(keyholders.approver, ask.agent_id, **changes).status_code == 200


@spec("9.8")
@pytest.mark.parametrize(("changes", "field"), WIDER, ids=str)
def test_an_approver_widens_nothing_and_is_told_which_field_would(
    keyholders: Keyholders, changes: Json, field: str
) -> None:
    ask = _agent(keyholders, permissions=PERMISSIONS, budget=BUDGET)
    response = _edit(keyholders.approver, ask.agent_id, **changes)
    assert (response.status_code, response.json()["error"]["code"]) == (403, "QWED-AUTH-003")
    assert response.json()["error"]["details"]["fields"] == [field]
    assert changes_of(ask, "edited") == []


@spec("9.8")
def test_members_and_agents_edit_nothing(spec_server: SpecServer, keyholders: Keyholders) -> None:
    ask = _agent(keyholders)
    assert _edit(keyholders.member, ask.agent_id, budget=BUDGET).status_code == 403
    with spec_server.client(token=ask.agent["agent_token"]) as agent:
        assert _edit(agent, ask.agent_id, labels={"team": "finance"}).status_code == 403
        assert agent.delete(f"/agents/{ask.agent_id}").status_code == 403
    with spec_server.client("foreign") as foreign:
        assert _edit(foreign, ask.agent_id, description="mine").status_code == 404
    assert changes_of(ask, "edited") == []


@spec("9.8")
@pytest.mark.parametrize("field", [{"labels": {"team": "support"}}, {"max_conversation_steps": 200}])
def test_labels_and_conversation_length_are_an_owners_at_registration_too(keyholders: Keyholders, field: Json) -> None:
    body = {"name": f"labelled {next(_names)}", "principal_id": "user_123", **field}
    for client in (keyholders.member, keyholders.approver):
        assert client.post("/agents/register", json=body).status_code == 403
    registered = keyholders.owner.post("/agents/register", json=body)
    assert registered.status_code == 201
    assert field.items() <= registered.json().items()


# ETag


@spec("B")
def test_a_stale_etag_is_412_with_what_has_changed(keyholders: Keyholders) -> None:
    ask = _agent(keyholders, budget=BUDGET)
    read = keyholders.owner.get(f"/agents/{ask.agent_id}")
    assert read.headers["etag"] == read.json()["etag"]
    changed = _edit(keyholders.owner, ask.agent_id, read.headers["etag"], budget={"max_daily_cost_usd": 1})
    assert changed.status_code == 200
    stale = _edit(keyholders.owner, ask.agent_id, read.headers["etag"], description="late")
    assert (stale.status_code, stale.json()["error"]["code"]) == (412, "QWED-REQ-010")
    assert stale.json()["error"]["details"] == {"changed": ["budget"], "etag": changed.headers["etag"]}
    again = _edit(keyholders.owner, ask.agent_id, changed.headers["etag"], description="late")
    assert again.status_code == 200


@spec("B")
def test_without_if_match_the_present_state_is_edited(keyholders: Keyholders) -> None:
    ask = _agent(keyholders)
    for description in ("one", "two"):
        assert _edit(keyholders.owner, ask.agent_id, description=description).status_code == 200
    assert _edit(keyholders.owner, ask.agent_id, "*", description="three").status_code == 200


@spec("B")
@pytest.mark.parametrize("etag", ["abc", 'W/"abc"', '"abc', ""])
def test_an_etag_that_is_none_is_refused(keyholders: Keyholders, etag: str) -> None:
    ask = _agent(keyholders)
    assert _edit(keyholders.owner, ask.agent_id, etag, description="x").status_code == 400


@spec("8.3")
def test_the_etag_changes_with_trust_and_suspension(keyholders: Keyholders) -> None:
    ask = _agent(keyholders, trust_level=2)
    path = f"/agents/{ask.agent_id}"
    first = keyholders.owner.get(path).headers["etag"]
    body = {"request": "trust_reduction", "to_level": 1, "justification": "less"}
    assert keyholders.owner.post(f"{path}/trust", json=body).status_code == 200
    stale = _edit(keyholders.owner, ask.agent_id, first, description="x")
    assert stale.json()["error"]["details"]["changed"] == ["trust_level"]


# Names


SPELLINGS = ("Rare {}", "RARE {}", " rare {} ", "\uff32are {}")


@spec("3.1")
@pytest.mark.parametrize("spelling", SPELLINGS)
def test_a_name_in_use_is_refused_with_its_agent(keyholders: Keyholders, spelling: str) -> None:
    number = next(_names)
    ask, name = _agent(keyholders, name=f"Rare {number}"), spelling.format(number)
    body = {"name": name, "principal_id": "user_123"}
    for client in (keyholders.owner, keyholders.member):
        refused = client.post("/agents/register", json=body)
        assert (refused.status_code, refused.json()["error"]["code"]) == (409, "QWED-REQ-009")
        assert refused.json()["error"]["details"]["agent_id"] == ask.agent_id
    other = _agent(keyholders)
    renamed = _edit(keyholders.owner, other.agent_id, name=name)
    assert (renamed.status_code, renamed.json()["error"]["details"]["agent_id"]) == (409, ask.agent_id)


@spec("3.1")
def test_an_agent_may_spell_its_own_name_otherwise(keyholders: Keyholders) -> None:
    number = next(_names)
    ask = _agent(keyholders, name=f"own {number}")
    assert _edit(keyholders.owner, ask.agent_id, name=f"OWN {number}").json()["name"] == f"OWN {number}"


@spec("3.1")
def test_a_name_with_the_form_of_an_id_is_refused(keyholders: Keyholders) -> None:
    body = {"name": "agent_0123456789abcdef01234567", "principal_id": "user_123"}
    assert keyholders.owner.post("/agents/register", json=body).status_code == 400


@spec("3.1")
def test_another_organisation_has_the_same_names_and_is_told_nothing(
    spec_server: SpecServer, keyholders: Keyholders
) -> None:
    ask = _agent(keyholders)
    with spec_server.client("foreign") as foreign:
        body = {"name": ask.agent["name"], "principal_id": "user_9"}
        theirs = foreign.post("/agents/register", json=body)
        assert theirs.status_code == 201
        assert foreign.get(f"/agents/{ask.agent['name']}").json()["agent_id"] == theirs.json()["agent_id"]


@spec("B")
def test_a_name_is_taken_wherever_an_id_is(spec_server: SpecServer, keyholders: Keyholders) -> None:
    ask = _agent(keyholders, name=f"Named Agent {next(_names)}", trust_level=2)
    name = ask.agent["name"].lower()
    owner, context = keyholders.owner, {"conversation_id": "by name", "step_number": 1}
    assert owner.get(f"/agents/{name}").json()["agent_id"] == ask.agent_id
    assert owner.get(f"/agents/{name}/budget").json()["agent_id"] == ask.agent_id
    assert (
        owner.post(f"/agents/{name}/verify", json={"action": SUM, "context": context}).json()["decision"] == "APPROVED"
    )
    with spec_server.client(token=ask.agent["agent_token"]) as agent:
        assert agent.get(f"/agents/{name}").json()["agent_id"] == ask.agent_id
        body = {"action": WRITE, "context": {**context, "step_number": 2}, "agent_id": name}
        waiting = agent.post(f"/agents/{name}/verify", json=body).json()
        assert said(waiting) == ("PENDING", "QWED-AGENT-TRUST-002")
        called = agent.post(
            f"/agents/{name}/tools/get_weather", json={"parameters": {}, "context": {**context, "step_number": 3}}
        )
        assert called.json()["decision"] == "APPROVED"
        assert agent.get(f"/agents/{ask.agent_id}x").status_code == 401
    listed = owner.get("/approvals", params={"agent_id": name}).json()["approvals"]
    assert [(each["agent_id"], each["agent_name"]) for each in listed] == [(ask.agent_id, ask.agent["name"])]
    assert [each["action_id"] for each in owner.get(f"/agents/{name}/activity").json()["activities"]]


@spec("9.8")
def test_a_name_says_nothing_to_a_stranger(spec_server: SpecServer, keyholders: Keyholders) -> None:
    ask, other = _agent(keyholders), _agent(keyholders)
    with spec_server.client() as stranger, spec_server.client(token=other.agent["agent_token"]) as agent:
        for name in (ask.agent["name"], "nobody at all"):
            assert stranger.get(f"/agents/{name}").status_code == 401
            assert agent.get(f"/agents/{name}").status_code == 401
            assert agent.post(f"/agents/{name}/verify", json=question(SUM)).status_code == 401


# Conversation length


@spec("9.3")
def test_the_length_of_a_conversation_is_the_agents_own(keyholders: Keyholders) -> None:
    short, long = _agent(keyholders, max_conversation_steps=2), _agent(keyholders, max_conversation_steps=60)
    answers = [said(short(another(step), step)) for step in (1, 2, 3)]
    assert answers == [("APPROVED", None)] * 2 + [("DENIED", "QWED-AGENT-LOOP-001")]
    assert [said(long(another(step), step)) for step in range(51, 62)] == [
        *[("APPROVED", None)] * 10,
        ("DENIED", "QWED-AGENT-LOOP-001"),
    ]


# Retirement


@spec("3.4")
def test_a_retired_agent_is_of_no_more_use_and_stays_readable(spec_server: SpecServer, keyholders: Keyholders) -> None:
    ask = _agent(keyholders, trust_level=2)
    done, waiting = ask(SUM, 1), ask(WRITE, 2)
    retired = keyholders.owner.delete(f"/agents/{ask.agent_id}")
    assert (retired.status_code, retired.json()["status"]) == (200, "retired")
    with spec_server.client(token=ask.agent["agent_token"]) as agent:
        assert agent.get(f"/agents/{ask.agent_id}").status_code == 401
        assert agent.post(f"/agents/{ask.agent_id}/verify", json=question(SUM)).status_code == 401
    refused = ask.send(question(SUM, step=3))
    assert (refused.status_code, refused.json()["error"]["message"]) == (403, "agent retired")
    approval = keyholders.owner.get(f"/approvals/{waiting['approval_id']}").json()
    assert (approval["state"], approval["resolution"]["reason"]) == ("rejected", "the agent was retired")
    assert ask.budget()["cost"]["held_usd"] == 0
    listed = ask.activity(kind="all")["activities"]
    assert done["action_id"] in {each["action_id"] for each in listed}
    assert {"retired", "rejected"} <= {each["event"] for each in listed}


@spec("3.4")
def test_retired_agents_are_listed_where_they_are_asked_for(keyholders: Keyholders) -> None:
    ask = _agent(keyholders)
    keyholders.owner.delete(f"/agents/{ask.agent_id}")

    def ids(**query: str) -> set[str]:
        agents = keyholders.owner.get("/agents", params={"limit": 1000, **query}).json()["agents"]
        return {each["agent_id"] for each in agents}

    assert ask.agent_id not in ids()
    assert ask.agent_id not in ids(status="active")
    assert ask.agent_id in ids(status="retired")
    assert ask.agent_id in ids(status="all")


@spec("3.4")
def test_nothing_wakes_a_retired_agent_and_its_name_stays_taken(keyholders: Keyholders) -> None:
    ask = _agent(keyholders, trust_level=1)
    owner, path = keyholders.owner, f"/agents/{ask.agent_id}"
    owner.delete(path)
    for verb in ("suspend", "reactivate", "complaint"):
        assert owner.post(f"{path}/{verb}", json={"reason": "try"}).status_code == 409
    assert owner.post(f"{path}/rotate-token").status_code == 409
    assert owner.post(f"{path}/trust", json={"request": "trust_reduction", "to_level": 0}).status_code == 409
    assert _edit(owner, ask.agent_id, description="x").status_code == 409
    again = owner.post("/agents/register", json={"name": ask.agent["name"], "principal_id": "u"})
    assert again.json()["error"]["details"]["agent_id"] == ask.agent_id
    assert (owner.delete(path).status_code, len(changes_of(ask, "retired"))) == (200, 1)


@spec("9.8")
def test_only_an_owner_retires(create_agent: CreateAgent, keyholders: Keyholders) -> None:
    ask = create_agent()
    for client in (keyholders.member, keyholders.approver):
        assert client.delete(f"/agents/{ask.agent_id}").status_code == 403


@spec("4.3")
def test_what_waits_for_a_retired_agent_is_not_approved(keyholders: Keyholders) -> None:
    ask = _agent(keyholders, trust_level=2)
    waiting = ask(WRITE, 1)
    keyholders.owner.delete(f"/agents/{ask.agent_id}")
    assert settle(keyholders.approver, waiting["approval_id"]).status_code == 409
