"""Block and trust lists (INTERFACES 6): changed by an owner, read by every key, effective at once."""

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.support.a2a_messages import WRONG
from tests.support.a2a_senders import OrganisationClient, create_organisation, error_of, outcome_of
from tests.support.server import Server

LISTS = {
    "blocks": {"agent_id": "mallory"},
    "trusted": {"agent_id": "ledger"},
    "pairs": {"sender": "shop", "receiver": "payroll"},
}
LARGE = 3_000_000


@pytest.fixture
def organisation(server: Server, stranger: httpx.Client) -> OrganisationClient:
    return create_organisation(stranger, server.owner_key)


def lists_of(organisation: OrganisationClient, role: str = "member") -> Any:
    return organisation.ask("GET", "/a2a/lists", role=role).json()


def test_the_lists_of_a_new_organisation_are_empty(organisation: OrganisationClient) -> None:
    assert lists_of(organisation) == {"blocks": [], "pairs": [], "trusted": []}


@pytest.mark.parametrize("name", LISTS)
def test_an_entry_is_put_seen_and_removed_and_the_log_says_by_whom(organisation: OrganisationClient, name: str) -> None:
    entry, path = LISTS[name], f"/a2a/{name}"
    for _ in range(2):
        assert organisation.ask("PUT", path, entry).json() == {**entry, "listed": True}
    listed = entry if name == "pairs" else entry["agent_id"]
    assert lists_of(organisation)[name] == [listed]
    assert organisation.ask("DELETE", path, entry).json() == {**entry, "listed": False}
    assert lists_of(organisation)[name] == []
    assert error_of(organisation.ask("DELETE", path, entry)) == (404, "QWED-REQ-007")
    changes = organisation.ask("GET", "/changes?limit=2").json()["changes"]
    assert len({change["event"] for change in changes}) == 2
    assert {change["by"] for change in changes} == {organisation.ask("GET", "/keys/self").json()["id"]}


@pytest.mark.parametrize("name", LISTS)
@pytest.mark.parametrize("method", ["PUT", "DELETE"])
def test_nobody_but_an_owner_changes_a_list(organisation: OrganisationClient, name: str, method: str) -> None:
    agent = organisation.register_agent()
    for role in ("member", "approver"):
        assert error_of(organisation.ask(method, f"/a2a/{name}", LISTS[name], role)) == (403, "QWED-AUTH-003")
    token = agent["agent_token"]
    assert error_of(organisation.ask(method, f"/a2a/{name}", LISTS[name], "", token)) == (403, "QWED-AUTH-003")
    assert lists_of(organisation)[name] == []


def test_the_lists_of_one_organisation_say_nothing_to_another(server: Server, organisation: OrganisationClient) -> None:
    elsewhere = create_organisation(organisation.client, server.owner_key)
    for name, entry in LISTS.items():
        organisation.ask("PUT", f"/a2a/{name}", entry)
    assert lists_of(elsewhere) == {"blocks": [], "pairs": [], "trusted": []}
    assert error_of(elsewhere.ask("DELETE", "/a2a/blocks", LISTS["blocks"])) == (404, "QWED-REQ-007")
    assert outcome_of(organisation.verdict("mallory")) == ("blocked", "trust_boundary")
    assert outcome_of(elsewhere.verdict("mallory")) == ("forwarded", "passthrough")


def test_a_blocked_agent_sends_and_receives_nothing_however_it_spells_its_name(
    organisation: OrganisationClient,
) -> None:
    organisation.ask("PUT", "/a2a/blocks", {"agent_id": "mallory"})
    for sender, receiver in (("mallory", "bob"), ("MALLORY", "bob"), ("bob", "mallory"), ("bob", " Mallory ")):
        assert outcome_of(organisation.verdict(sender, receiver)) == ("blocked", "trust_boundary")
    organisation.ask("DELETE", "/a2a/blocks", {"agent_id": "mallory"})
    assert outcome_of(organisation.verdict("mallory", "bob")) == ("forwarded", "passthrough")


def test_a_blocked_pair_is_blocked_in_one_direction(organisation: OrganisationClient) -> None:
    organisation.ask("PUT", "/a2a/pairs", LISTS["pairs"])
    assert outcome_of(organisation.verdict("shop", "payroll")) == ("blocked", "trust_boundary")
    assert outcome_of(organisation.verdict("payroll", "shop")) == ("forwarded", "passthrough")
    assert outcome_of(organisation.verdict("shop", "stock")) == ("forwarded", "passthrough")


def test_a_guard_sees_nothing_of_what_the_boundary_refuses_and_trust_opens_no_block(
    organisation: OrganisationClient,
) -> None:
    for name in ("blocks", "trusted"):
        organisation.ask("PUT", f"/a2a/{name}", {"agent_id": "both"})
    verdict = organisation.verdict("both", payload=WRONG["code_execution"], kind="code_execution")
    assert outcome_of(verdict) == ("blocked", "trust_boundary")


@pytest.mark.parametrize(
    ("name", "body", "code"),
    [
        ("blocks", {}, "QWED-REQ-004"),
        ("blocks", {"agent_id": ""}, "QWED-REQ-001"),
        ("blocks", {"agent_id": 7}, "QWED-REQ-001"),
        ("trusted", {"agent_id": "a\nb"}, "QWED-REQ-001"),
        ("trusted", {"agent_id": "x" * 257}, "QWED-REQ-001"),
        ("pairs", {"sender": "a"}, "QWED-REQ-004"),
        ("pairs", {"agent_id": "a"}, "QWED-REQ-001"),
        ("blocks", [], "QWED-REQ-001"),
    ],
)
def test_what_is_no_entry_is_refused_by_name(organisation: OrganisationClient, name: str, body: Any, code: str) -> None:
    for method in ("PUT", "DELETE"):
        assert error_of(organisation.ask(method, f"/a2a/{name}", body)) == (400, code)


# Settings of the operator


@pytest.fixture(scope="module")
def narrow(tmp_path_factory: pytest.TempPathFactory) -> Iterator[OrganisationClient]:
    """Strict server with two messages per minute and pair, and payloads above the usual body limit."""
    settings = {
        "QWED_A2A_STRICT": "true",
        "QWED_A2A_MESSAGES_PER_MINUTE": "2",
        "QWED_A2A_MAX_PAYLOAD_BYTES": str(LARGE),
    }
    running = Server(Path(tmp_path_factory.mktemp("strict")) / "data", **settings)
    with httpx.Client(base_url=running.base_url, timeout=30) as client:
        yield create_organisation(client, running.owner_key)
    assert running.stop() == 0


def test_where_it_is_strict_only_registered_and_trusted_senders_send(narrow: OrganisationClient) -> None:
    assert outcome_of(narrow.verdict("a passer-by")) == ("blocked", "trust_boundary")
    narrow.ask("PUT", "/a2a/trusted", {"agent_id": "ledger"})
    assert outcome_of(narrow.verdict("ledger")) == ("forwarded", "bypass")
    agent = narrow.register_agent()
    assert outcome_of(narrow.verdict(agent["agent_id"], token=agent["agent_token"])) == ("forwarded", "passthrough")


def test_a_pair_that_sends_too_fast_is_stopped_and_others_are_not(narrow: OrganisationClient) -> None:
    agent = narrow.register_agent()
    sent = [narrow.verdict(agent["agent_id"], "bob", token=agent["agent_token"]) for _ in range(4)]
    assert [verdict["status"] for verdict in sent] == ["forwarded", "forwarded", "blocked", "blocked"]
    assert {verdict["engine_used"] for verdict in sent[2:]} == {"trust_boundary"}
    assert outcome_of(narrow.verdict(agent["agent_id"], "carol", token=agent["agent_token"])) == (
        "forwarded",
        "passthrough",
    )
    # One leaf covers a minute of refusals, and every attestation is valid.
    assert sent[2]["activity_id"] == sent[3]["activity_id"]
    for verdict in sent:
        checked = narrow.ask("POST", "/attestation/verify", {"jwt": verdict["attestation_jwt"]}, role="").json()
        assert checked["error"] is None


@pytest.mark.drill
def test_a_large_payload_is_taken_from_whom_is_known_before_it_is_read(narrow: OrganisationClient) -> None:
    agent = narrow.register_agent()
    body = {"sender_agent_id": agent["agent_id"], "receiver_agent_id": "dora", "payload": {"text": "x" * (LARGE - 20)}}
    authorization = {"Authorization": f"Bearer {agent['agent_token']}"}
    named = authorization | {"QWED-Agent-Id": agent["agent_id"]}
    assert outcome_of(narrow.ask("POST", "/a2a/intercept", body).json()) == ("forwarded", "passthrough")
    assert outcome_of(narrow.client.post("/a2a/intercept", json=body, headers=named).json()) == (
        "forwarded",
        "passthrough",
    )
    for headers in ({}, authorization, authorization | {"QWED-Agent-Id": "agent_" + "0" * 24}):
        assert error_of(narrow.client.post("/a2a/intercept", json=body, headers=headers)) == (413, "QWED-REQ-002")
    more = {**body, "payload": {"text": "x" * LARGE}}
    assert error_of(narrow.ask("POST", "/a2a/intercept", more)) == (413, "QWED-REQ-002")


# Installation without the message dependencies

_SERVER_WITHOUT_PYDANTIC = """
import sys
from pathlib import Path
sys.modules["pydantic"] = None
from qwed.cli.serve import _run
sys.exit(_run(port=0, data_dir=Path(sys.argv[-1])))
"""
"""Bypasses the command line, whose library needs pydantic."""


@pytest.mark.drill
def test_a_server_without_what_reads_messages_starts_and_says_what_is_missing(tmp_path: Path) -> None:
    bare = Server(tmp_path / "data", (sys.executable, "-c", _SERVER_WITHOUT_PYDANTIC))
    with httpx.Client(base_url=bare.base_url, timeout=30) as client:
        organisation = OrganisationClient(client, {"owner": bare.owner_key})
        assert organisation.ask("GET", "/a2a/health", role="").json()["status"] == "unavailable"
        for answer in (organisation.send(), organisation.ask("GET", "/a2a/metrics")):
            assert error_of(answer) == (503, "QWED-SYS-002")
            assert "`pydantic`" in answer.json()["error"]["message"]
        assert organisation.ask("PUT", "/a2a/blocks", {"agent_id": "mallory"}).status_code == 200
    assert bare.stop() == 0
