"""Ruling 4.18: everything belongs to an organisation and is invisible to others. See also tests/property."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import httpx
import pytest

from qwed.api.openapi.document import document
from tests.spec.sections import spec
from tests.support.full_organisations import (
    ROLES,
    SHARED_TOOL,
    Tenant,
    auth_headers,
    body_of,
    create_tenant,
    fill_tenant,
    shape_of,
)
from tests.support.route_caller import answer_to
from tests.support.server import Server

_IN_PATH = re.compile(r"{(\w+)}")
OPERATIONS = [
    (operation["operationId"], method.upper(), path)
    for path, methods in document()["paths"].items()
    for method, operation in methods.items()
]
_OF_TENANTS = {"agent_id", "approval_id", "attestation_id", "key_id", "job_id"}
WITH_IDS = [each for each in OPERATIONS if _OF_TENANTS & set(_IN_PATH.findall(each[2]))]


class Neighbours(NamedTuple):
    client: httpx.Client
    ours: Tenant
    theirs: Tenant


@pytest.fixture(scope="module")
def neighbours(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Neighbours]:
    server = Server(Path(tmp_path_factory.mktemp("neighbours")) / "data")
    with httpx.Client(base_url=server.base_url, timeout=30) as client:
        ours, theirs = (
            fill_tenant(create_tenant(client, server.owner_key, name)) for name in ("Ourselves", "Themselves")
        )
        yield Neighbours(client, ours, theirs)
    assert server.stop() == 0


def _ask(neighbours: Neighbours, operation: tuple[str, str, str], shown: dict[str, str], ids: dict[str, str]) -> Any:
    name, method, path = operation
    body = body_of(name)
    content = {} if body is None else {"json": body}
    url = _IN_PATH.sub(lambda found: ids[found[1]], path)
    return answer_to(neighbours.client, method, url, headers=shown, **content)


def _ids_of(tenant: Tenant) -> dict[str, str]:
    return {
        "agent_id": tenant.agents[0],
        "action_id": tenant.actions[1],
        "approval_id": tenant.approvals[2],
        "key_id": tenant.key_ids["member"],
        "job_id": tenant.jobs[0],
        "attestation_id": tenant.attestations[0],
        "policy_id": "refunds",
        "tool": SHARED_TOOL,
        "name": SHARED_TOOL,
    }


def _like(known: str) -> str:
    prefix, _, digits = known.rpartition("_")
    return f"{prefix}_{'0' * len(digits)}"


@spec("B")
@pytest.mark.parametrize("operation", WITH_IDS, ids=lambda each: each[0])
def test_an_id_of_another_organisation_is_answered_like_one_that_does_not_exist(
    neighbours: Neighbours, operation: tuple[str, str, str]
) -> None:
    theirs = _ids_of(neighbours.theirs)
    nobodys = {name: value if name in ("tool", "name") else _like(value) for name, value in theirs.items()}
    for role in ROLES:
        shown = auth_headers(neighbours.ours.keys[role])
        foreign = _ask(neighbours, operation, shown, theirs)
        missing = _ask(neighbours, operation, shown, nobodys)
        assert foreign.status_code in (403, 404)
        assert shape_of(foreign, *theirs.values()) == shape_of(missing, *nobodys.values())


@spec("B")
@pytest.mark.parametrize("name", ["get_action", "report_execution"])
def test_an_action_of_another_organisation_is_none_of_our_agents(neighbours: Neighbours, name: str) -> None:
    operation = next(each for each in OPERATIONS if each[0] == name)
    shown = auth_headers(neighbours.ours.keys["owner"])
    ids = _ids_of(neighbours.ours) | {"action_id": neighbours.theirs.actions[0]}
    response = _ask(neighbours, operation, shown, ids)
    assert (response.status_code, response.json()["error"]["code"]) == (404, "QWED-REQ-007")


@spec("B")
def test_lists_are_the_callers_organisation_only(neighbours: Neighbours) -> None:
    ours, theirs = neighbours.ours, neighbours.theirs
    lists = ["/agents", "/approvals", f"/approvals?agent_id={theirs.agents[0]}", "/keys", "/changes", "/tools"]
    for path in lists:
        text = neighbours.client.get(path, headers=auth_headers(ours.keys["owner"])).text
        own = [each for each in theirs.ids if each in text]
        assert own == [], path
    empty = ours.ask("GET", f"/approvals?agent_id={theirs.agents[0]}")
    assert empty == {"approvals": [], "next_cursor": None}


@spec("9.2")
def test_conversations_and_retries_of_the_same_name_do_not_meet(neighbours: Neighbours) -> None:
    """Two organisations use the same conversation, the same step and the same Idempotency-Key."""
    body = {
        "action": {"type": "calculate", "query": "7*6"},
        "context": {"conversation_id": "the same", "step_number": 1},
    }
    answers = [
        tenant.ask("POST", f"/agents/{tenant.agents[0]}/verify", body, **{"Idempotency-Key": "the same"})
        for tenant in (neighbours.ours, neighbours.theirs)
    ]
    assert [answer["decision"] for answer in answers] == ["APPROVED", "APPROVED"]
    assert answers[0]["action_id"] != answers[1]["action_id"]


@spec("5.3")
def test_a_tool_of_the_same_name_is_described_by_each_organisation_for_itself(neighbours: Neighbours) -> None:
    before = neighbours.theirs.ask("GET", "/tools")
    neighbours.ours.ask("PUT", f"/tools/{SHARED_TOOL}", {"risk_level": "low", "requires_approval": False})
    assert neighbours.theirs.ask("GET", "/tools") == before


@spec("B")
def test_the_kill_switch_stops_one_organisation_and_no_other(neighbours: Neighbours) -> None:
    ours, theirs = neighbours.ours, neighbours.theirs
    ours.ask("POST", "/suspend-all", {"reason": "for the test"}, "member")
    try:
        body = body_of("verify")
        stopped = neighbours.client.post(
            f"/agents/{ours.agents[0]}/verify", json=body, headers=auth_headers(ours.keys["owner"])
        )
        assert (stopped.status_code, stopped.json()["error"]["code"]) == (403, "QWED-AGENT-003")
        assert theirs.ask("POST", f"/agents/{theirs.agents[0]}/verify", body)["decision"] == "APPROVED"
    finally:
        ours.ask("POST", "/reactivate-all", {"reason": "the test is over"})


@spec("9.8")
def test_a_key_of_one_organisation_beside_a_token_of_another_opens_nothing(neighbours: Neighbours) -> None:
    ours, theirs = neighbours.ours, neighbours.theirs
    both = auth_headers(ours.keys["owner"], theirs.tokens[0])
    for operation in OPERATIONS:
        names = set(_IN_PATH.findall(operation[2]))
        if "agent_id" in names:
            response = _ask(neighbours, operation, both, _ids_of(theirs))
            assert response.status_code in (401, 403, 404), (operation, response.text)
            assert theirs.marker not in response.text
