"""DESIGN 7, `policy_hash`: every attestation names the policy that was applied, and another policy has another hash."""

from collections.abc import Callable
from typing import Any

import httpx

from qwed.model import sha256_of
from qwed.settings import VERSION
from tests.conftest import AgentConversation
from tests.spec.conftest import Keyholders
from tests.spec.requests import Json, action_of, claims_of, settle, tool_call
from tests.spec.sections import spec

ATTESTED = {"require_attestation": True}


def _policy_of(answer: Json) -> str:
    policy: str = claims_of(answer["attestation"])["qwed"]["policy_hash"]
    return policy


def _described(api: httpx.Client, tool: str, **row: Any) -> None:
    assert api.put(f"/tools/{tool}", json=row).status_code == 200


@spec("4.2")
def test_the_hash_is_of_the_permissions_the_trust_level_the_tool_and_the_settings(
    api: httpx.Client, asking: Callable[..., AgentConversation]
) -> None:
    _described(api, "weigh_parcel", risk_level="low")
    ask = asking(permissions={"allowed_tools": ["weigh_parcel"], "max_rows": 5})
    shown = api.get(f"/agents/{ask.agent_id}").json()
    row = next(each for each in api.get("/tools").json()["tools"] if each["name"] == "weigh_parcel")
    policy = {
        "permissions": shown["permissions"],
        "trust_level": shown["trust_level"],
        "tool": row,
        "settings": VERSION,
    }
    assert _policy_of(ask(tool_call("weigh_parcel"), 1, options=ATTESTED)) == sha256_of(policy)


@spec("4.2", "5.3")
def test_a_tool_that_is_described_anew_is_another_policy(
    api: httpx.Client, asking: Callable[..., AgentConversation]
) -> None:
    ask, call = asking(trust_level=2), tool_call("print_label")
    _described(api, "print_label", risk_level="low")
    first = _policy_of(ask(call, 1, options=ATTESTED))
    _described(api, "print_label", risk_level="medium")
    second = _policy_of(ask(call, 2, options=ATTESTED))
    _described(api, "print_label", risk_level="low")
    third = _policy_of(ask({**call, "parameters": {"copies": 2}}, 3, options=ATTESTED))
    assert first == third != second


@spec("4.2", "2.3")
def test_what_a_person_approved_is_attested_under_the_policy_of_that_moment(new_keyholders: Keyholders) -> None:
    ask, call = new_keyholders.create_agent(trust_level=1), tool_call("ship_parcel")
    _described(new_keyholders.owner, "ship_parcel", risk_level="low")
    before = _policy_of(ask(call, 1, options=ATTESTED))
    _described(new_keyholders.owner, "ship_parcel", risk_level="low", requires_approval=True)
    waiting = ask(call, 2)
    assert waiting["decision"] == "PENDING"
    assert settle(new_keyholders.approver, waiting["approval_id"]).status_code == 200
    assert _policy_of(action_of(ask, waiting["action_id"])) != before
