"""DESIGN 11: an organisation's own rules over HTTP, from the document that is applied to the decision that names it."""

import base64
import json
from typing import Any

import httpx
import pytest

from tests.conftest import AgentConversation
from tests.spec.conftest import Keyholders
from tests.spec.requests import EMAIL, SUM, Json, another, said, tool_call
from tests.spec.sections import spec

REFUNDS = """\
policy: refunds
facts: 1
description: Small refunds are automatic, larger ones need a person.
applies_to:
  tools: [refund]
args: {amount: number}
rules:
  - id: small
    when: args.amount > 0 && args.amount <= 50
    then: allow
  - id: medium
    when: args.amount > 50 && args.amount <= 500
    then: ask
    overrides: trust
    message: refunds above 50 USD need a person
  - id: large
    when: args.amount > 500 || args.amount <= 0
    then: deny
    message: refunds above 500 USD are made by people
"""
GROUPS = REFUNDS.replace("    overrides: trust\n", "    overrides: trust\n    approvers: [finance, security]\n")
NO_MAIL = """\
policy: mail
facts: 1
description: Nobody sends mail.
rules:
  - id: never
    when: action.type == "send_email"
    then: deny
    message: we send no mail
"""


class House(Keyholders):
    """Clients of one organisation, with short calls for its policies."""

    def apply(self, *texts: str, version: str = "*", client: httpx.Client | None = None) -> httpx.Response:
        body = {"documents": [{"text": text} for text in texts]}
        return (client or self.owner).put("/policies", json=body, headers={"If-Match": version})

    def agent(self, **fields: Any) -> AgentConversation:
        assert self.owner.put("/tools/refund", json={"risk_level": "high", "effect": "SPEND"}).status_code == 200
        return self.create_agent(**fields)


@pytest.fixture
def house(new_keyholders: Keyholders) -> House:
    return House(*new_keyholders)


def refund(amount: Any) -> Json:
    return tool_call("refund", amount=amount)


def named(answer: Json) -> Any:
    """Return the rule and the version that an answer names."""
    policy = answer.get("policy")
    return policy and (policy["policy"], policy["rule"], policy["then"], policy["version"])


def claims_of(answer: Json) -> Json:
    """Return the claims of the attestation of an answer."""
    payload = answer["attestation"].split(".")[1]
    claims: Json = json.loads(base64.urlsafe_b64decode(payload + "=" * (-len(payload) % 4)))["qwed"]
    return claims


# Decisions


@spec("2.3")
def test_the_rules_decide_and_the_answer_names_them(house: House) -> None:
    ask = house.agent()
    assert said(ask(refund(20), 1)) == ("DENIED", "QWED-AGENT-TRUST-001"), "money is critical, the agent supervised"
    assert house.apply(REFUNDS).json()["version"] == 1
    small, medium, large = ask(refund(20), 1), ask(refund(100), 2), ask(refund(501), 3)
    assert (said(small), named(small)) == (("APPROVED", None), ("refunds", "small", "allow", 1))
    assert (said(medium), named(medium)) == (("PENDING", "QWED-AGENT-TRUST-002"), ("refunds", "medium", "ask", 1))
    assert medium["error"]["message"] == "refunds above 50 USD need a person"
    assert medium["error"]["details"].items() >= {"policy": "refunds", "rule": "medium", "version": 1}.items()
    assert (said(large), named(large)) == (("DENIED", "QWED-AGENT-POLICY-001"), ("refunds", "large", "deny", 1))
    assert large["error"]["message"] == "refunds above 500 USD are made by people"
    assert large["error"]["final"] is True


@spec("2.3")
def test_where_no_rule_matches_the_tables_decide(house: House) -> None:
    house.apply(REFUNDS)
    ask = house.agent()
    answer = ask(SUM, 1)
    assert (said(answer), named(answer)) == (("APPROVED", None), None)
    assert said(ask(EMAIL, 2)) == ("PENDING", "QWED-AGENT-TRUST-002")


@spec("2.3")
def test_a_rule_that_cannot_be_evaluated_denies_and_is_named(house: House) -> None:
    house.apply(REFUNDS)
    answer = house.agent()(refund("twenty"), 1)
    assert said(answer) == ("DENIED", "QWED-AGENT-POLICY-002")
    assert answer["error"]["details"]["policy"] == "refunds"


@spec("2.3")
def test_a_denial_by_a_policy_costs_no_trust_and_no_step(house: House) -> None:
    house.apply(NO_MAIL)
    ask = house.agent(trust_level=2)
    for _ in range(30):
        assert said(ask(EMAIL, 1)) == ("DENIED", "QWED-AGENT-POLICY-001")
    assert said(ask(SUM, 1)) == ("APPROVED", None)
    assert house.owner.get(f"/agents/{ask.agent_id}").json()["trust_level"] == 2


@spec("2.3")
def test_a_hard_limit_comes_before_what_a_policy_allows(house: House) -> None:
    house.apply(REFUNDS)
    ask = house.agent(permissions={"blocked_tools": ["refund"]})
    assert said(ask(refund(20), 1)) == ("DENIED", "QWED-AGENT-004")


@spec("2.3")
def test_an_agent_that_lost_trust_loses_what_policies_allow(house: House) -> None:
    house.apply(REFUNDS)
    ask = house.agent(trust_level=2)
    assert said(ask(refund(20), 1)) == ("APPROVED", None)
    lowered = house.owner.post(
        f"/agents/{ask.agent_id}/trust", json={"request": "trust_reduction", "to_level": 1, "justification": "it erred"}
    )
    assert lowered.status_code == 200
    assert said(ask(refund(20), 2)) == ("DENIED", "QWED-AGENT-TRUST-001")


@spec("2.3")
def test_a_stored_answer_stays_what_it_was(house: House) -> None:
    house.apply(REFUNDS)
    ask = house.agent()
    body = {"action": refund(20), "context": {"conversation_id": "stored", "step_number": 1}}
    path, headers = f"/agents/{ask.agent_id}/verify", {"Idempotency-Key": "k1"}
    first = house.owner.post(path, json=body, headers=headers).json()
    house.apply(REFUNDS.replace("then: allow", "then: deny"))
    again = house.owner.post(path, json=body, headers=headers).json()
    assert (again["decision"], again["action_id"], again["policy"]) == ("APPROVED", first["action_id"], first["policy"])


@spec("2.3")
def test_the_log_the_attestation_and_the_activity_name_rule_and_version(house: House) -> None:
    ask = house.agent(trust_level=1)
    before = ask(SUM, 1, options={"require_attestation": True})
    house.apply(REFUNDS)
    answer = ask(refund(20), 2)
    assert claims_of(answer)["policies"] == {"version": 1, "policy": "refunds", "rule": "small"}
    activity = house.owner.get(f"/agents/{ask.agent_id}/activity").json()["activities"][0]
    assert (activity["policy"], activity["policy_version"]) == (answer["policy"], 1)
    entries = house.owner.get("/audit/entries").json()["entries"]
    assert '"policy":"refunds"' in str(entries[-1]["leaf"])
    assert before["attestation"] != answer["attestation"]


@spec("2.3")
def test_the_hash_of_the_policy_covers_the_set(house: House) -> None:
    ask = house.agent(trust_level=1)

    def policy_hash(step: int) -> str:
        answer = ask(another(step), step, options={"require_attestation": True})
        return str(claims_of(answer)["policy_hash"])

    without = policy_hash(1)
    house.apply(REFUNDS)
    first = policy_hash(2)
    house.apply(NO_MAIL)
    second = policy_hash(3)
    house.apply()
    assert len({without, first, second}) == 3
    assert policy_hash(4) == without


@spec("2.3")
def test_a_policy_in_shadow_is_recorded_and_decides_nothing(house: House) -> None:
    house.apply(NO_MAIL.replace("facts: 1\n", "facts: 1\nmode: shadow\n"))
    ask = house.agent(trust_level=2)
    answer = ask(EMAIL, 1)
    assert (said(answer), named(answer)) == (("APPROVED", None), None)
    activity = house.owner.get(f"/agents/{ask.agent_id}/activity").json()["activities"][0]
    assert [(rule["policy"], rule["then"]) for rule in activity["shadow"]] == [("mail", "deny")]


# Approvals


def pending(house: House, ask: AgentConversation, amount: int, step: int) -> str:
    answer = ask(refund(amount), step)
    assert answer["decision"] == "PENDING", answer
    return str(answer["approval_id"])


def approve(client: httpx.Client, approval_id: str) -> httpx.Response:
    return client.post(f"/approvals/{approval_id}/approve", json={"reason": "it is right"})


@spec("4.3")
def test_an_approval_is_decided_again_on_the_policies_of_its_moment(house: House) -> None:
    house.apply(REFUNDS)
    ask = house.agent()
    first, second = pending(house, ask, 100, 1), pending(house, ask, 200, 2)
    house.apply(REFUNDS.replace("<= 500", "<= 150").replace("> 500", "> 150"))
    approved, refused = approve(house.approver, first), approve(house.approver, second)
    assert (approved.status_code, approved.json()["resolution"]["decision"]) == (200, "APPROVED")
    assert refused.status_code == 409
    assert refused.json()["error"]["details"]["rule"] == "large"
    assert house.owner.get(f"/approvals/{second}").json()["state"] == "pending"


@spec("4.3")
def test_what_the_agent_may_not_do_any_more_without_a_rule_is_not_approved(house: House) -> None:
    house.apply(REFUNDS)
    waiting = pending(house, house.agent(), 100, 1)
    house.apply()
    assert approve(house.approver, waiting).status_code == 409


def group_key(house: House, *groups: str) -> httpx.Client:
    created = house.owner.post("/keys", json={"name": "-".join(groups), "role": "approver", "groups": [*groups]})
    assert created.status_code == 201, created.text
    assert created.json()["groups"] == sorted(groups)
    return httpx.Client(base_url=house.owner.base_url, headers={"X-API-Key": created.json()["key"]}, timeout=60)


@spec("4.3")
def test_a_set_that_names_a_group_without_a_key_is_refused_with_its_name(house: House) -> None:
    refused = house.apply(GROUPS)
    assert (refused.status_code, refused.json()["error"]["code"]) == (400, "QWED-REQ-011")
    messages = [problem["message"] for problem in refused.json()["error"]["details"]["problems"]]
    assert [("`finance`" in message, "`security`" in message) for message in messages] == [
        (True, False),
        (False, True),
    ]


@spec("4.3")
def test_each_group_approves_once(house: House) -> None:
    with group_key(house, "finance") as finance, group_key(house, "security") as security:
        assert house.apply(GROUPS).status_code == 200
        waiting = pending(house, house.agent(), 100, 1)
        assert approve(house.approver, waiting).status_code == 403, "a key without a group"
        once = approve(finance, waiting).json()
        assert (once["state"], once["approvers"]) == ("pending", ["finance", "security"])
        assert [one["groups"] for one in once["approved_by"]] == [["finance"]]
        assert approve(finance, waiting).status_code == 409, "the same key again"
        done = approve(security, waiting).json()
        assert (done["state"], done["resolution"]["decision"]) == ("approved", "APPROVED")


@spec("4.3")
def test_a_key_of_both_groups_approves_for_one_of_them(house: House) -> None:
    with group_key(house, "finance", "security") as both, group_key(house, "finance") as finance:
        assert house.apply(GROUPS).status_code == 200
        waiting = pending(house, house.agent(), 100, 1)
        assert approve(both, waiting).json()["state"] == "pending"
        assert approve(finance, waiting).json()["state"] == "approved"


@spec("4.3")
def test_the_approval_of_a_key_that_left_its_group_does_not_count(house: House) -> None:
    with group_key(house, "finance") as finance, group_key(house, "security", "finance") as security:
        assert house.apply(GROUPS).status_code == 200
        waiting = pending(house, house.agent(), 100, 1)
        assert approve(finance, waiting).json()["state"] == "pending"
        key_id = finance.get("/keys/self").json()["id"]
        assert house.owner.patch(f"/keys/{key_id}", json={"groups": []}).json()["groups"] == []
        assert approve(security, waiting).json()["state"] == "pending", "finance is missing again"


@spec("4.3")
def test_a_key_that_approves_nothing_gets_no_groups(house: House) -> None:
    member = house.owner.post("/keys", json={"name": "m", "role": "member", "groups": ["finance"]})
    assert member.status_code == 400
    key_id = house.member.get("/keys/self").json()["id"]
    assert house.owner.patch(f"/keys/{key_id}", json={"groups": ["finance"]}).status_code == 409


# Changes


@spec("7.1")
def test_a_change_needs_the_version_that_was_read(house: House) -> None:
    assert house.owner.put("/policies", json={"documents": []}).json()["error"]["code"] == "QWED-REQ-004"
    first = house.apply(REFUNDS, version='"0"')
    assert (first.status_code, first.headers["etag"]) == (200, '"1"')
    late = house.apply(NO_MAIL, version='"0"')
    assert (late.status_code, late.json()["error"]["details"]["version"]) == (412, 1)
    assert house.apply(REFUNDS, NO_MAIL, version="1").json()["policies_added"] == ["mail"]
    shown = house.member.get("/policies")
    assert (shown.headers["etag"], [policy["policy"] for policy in shown.json()["policies"]]) == (
        '"2"',
        ["mail", "refunds"],
    )


@spec("7.1")
def test_the_same_set_again_changes_nothing(house: House) -> None:
    house.apply(REFUNDS, NO_MAIL)
    again = house.apply(NO_MAIL, REFUNDS, version='"0"').json()
    assert (again["version"], again["changed"]) == (1, False)
    assert [version["version"] for version in house.owner.get("/policies/versions").json()["versions"]] == [1]


@spec("7.1")
def test_single_policies_are_added_replaced_and_removed(house: House) -> None:
    match = {"If-Match": "*"}
    added = house.owner.put("/policies/mail", json={"text": NO_MAIL}, headers=match)
    assert (added.status_code, added.json()["policies_added"]) == (200, ["mail"])
    house.owner.put("/policies/refunds", json={"text": REFUNDS}, headers=match)
    assert house.member.get("/policies/mail").json() == {"policy": "mail", "text": NO_MAIL, "version": 2}
    other = house.owner.put("/policies/refunds", json={"text": NO_MAIL}, headers=match)
    assert other.status_code == 400, "the text is of another policy"
    removed = house.owner.delete("/policies/mail", headers=match)
    assert removed.json()["policies_removed"] == ["mail"]
    assert house.owner.get("/policies/mail").status_code == 404
    versions = house.owner.get("/policies/mail/versions").json()["versions"]
    assert [version["version"] for version in versions] == [3, 1]


@spec("7.1")
def test_an_earlier_version_is_read_and_put_in_force_again(house: House) -> None:
    house.apply(REFUNDS)
    house.apply(NO_MAIL)
    earlier = house.owner.get("/policies?version=1").json()
    assert earlier["policies"] == [{"policy": "refunds", "text": REFUNDS}]
    back = house.owner.post("/policies/rollback", json={"version": 1}, headers={"If-Match": '"2"'}).json()
    assert (back["version"], back["digest"], back["policies_removed"]) == (3, earlier["digest"], ["mail"])
    assert house.owner.get("/policies").json()["policies"] == earlier["policies"]


@spec("7.1")
def test_every_change_is_in_the_log_without_content(house: House) -> None:
    house.apply(REFUNDS)
    change = house.owner.get("/changes").json()["changes"][0]
    assert (change["event"], change["change"]["added"], change["change"]["policy_version"]) == (
        "policies_changed",
        ["refunds"],
        1,
    )
    leaf = str(house.owner.get("/audit/entries").json()["entries"][-1]["leaf"])
    assert '"policies":["refunds"]' in leaf
    assert "Small refunds" not in leaf


@spec("7.1")
def test_a_document_with_a_mistake_is_refused_with_its_position(house: House) -> None:
    mistaken = REFUNDS.replace("args.amount > 0 &&", "args.amont > 0 &&")
    refused = house.apply(mistaken).json()["error"]
    assert (refused["code"], refused["details"]["problems"][0]["line"]) == ("QWED-REQ-011", 9)
    checked = house.member.post("/policies/check", json={"documents": [{"name": "r.yaml", "text": mistaken}]}).json()
    assert (checked["valid"], checked["problems"][0]["file"]) == (False, "r.yaml")
    assert house.owner.get("/policies").json()["version"] == 0


@spec("7.1")
def test_a_rule_counts_the_calls_that_were_permitted_before(house: House) -> None:
    mails = 'usage.count("calculate", duration("1h"))'
    house.apply(NO_MAIL.replace('action.type == "send_email"', f'action.type == "calculate" && {mails} >= 2'))
    ask = house.agent()
    assert [said(ask(another(step), step))[0] for step in (1, 2, 3)] == ["APPROVED", "APPROVED", "DENIED"]


@spec("7.1")
def test_an_explanation_shows_facts_and_rules_and_leaves_no_trace(house: House) -> None:
    house.apply(REFUNDS, NO_MAIL)
    ask = house.agent()
    index = house.owner.get("/audit/head").json()["size"]
    body = {"agent_id": ask.agent_id, "action": refund(20)}
    explained = house.member.post("/policies/explain", json=body).json()
    assert (explained["decision"], explained["policy"]["rule"]) == ("APPROVED", "small")
    assert {rule["rule"]: rule["then"] for rule in explained["rules"] if rule["policy"] == "refunds"} == {
        "small": "allow",
        "medium": None,
        "large": None,
    }
    denied = house.member.post("/policies/explain", json={"agent_id": ask.agent_id, "action": EMAIL}).json()
    assert (denied["decision"], denied["error"]["code"]) == ("DENIED", "QWED-AGENT-POLICY-001")
    assert denied["facts"].keys() >= set()
    assert house.owner.get("/audit/head").json()["size"] == index


@spec("7.1")
def test_policies_of_one_organisation_are_none_of_another(house: House, keyholders: Keyholders) -> None:
    house.apply(NO_MAIL)
    assert keyholders.owner.get("/policies").json()["version"] == 0
    assert keyholders.owner.get("/policies/mail").status_code == 404
