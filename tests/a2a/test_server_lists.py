"""INTERFACES 6: who may send to whom, put and removed by an owner, seen by every key, and held to at once."""

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.support.messages import WRONG
from tests.support.senders import Office, open_office, refusal, said
from tests.support.server import Server

LISTS = {
    "blocks": {"agent_id": "mallory"},
    "trusted": {"agent_id": "ledger"},
    "pairs": {"sender": "shop", "receiver": "payroll"},
}
LARGE = 3_000_000


@pytest.fixture
def office(server: Server, stranger: httpx.Client) -> Office:
    return open_office(stranger, server.owner_key)


def shown(office: Office, role: str = "member") -> Any:
    return office.ask("GET", "/a2a/lists", role=role).json()


def test_the_lists_of_a_new_organisation_are_empty(office: Office) -> None:
    assert shown(office) == {"blocks": [], "pairs": [], "trusted": []}


@pytest.mark.parametrize("name", LISTS)
def test_an_entry_is_put_seen_and_removed_and_the_log_says_by_whom(office: Office, name: str) -> None:
    entry, path = LISTS[name], f"/a2a/{name}"
    for _ in range(2):
        assert office.ask("PUT", path, entry).json() == {**entry, "listed": True}
    listed = entry if name == "pairs" else entry["agent_id"]
    assert shown(office)[name] == [listed]
    assert office.ask("DELETE", path, entry).json() == {**entry, "listed": False}
    assert shown(office)[name] == []
    assert refusal(office.ask("DELETE", path, entry)) == (404, "QWED-REQ-007")
    changes = office.ask("GET", "/changes?limit=2").json()["changes"]
    assert len({change["event"] for change in changes}) == 2
    assert {change["by"] for change in changes} == {office.ask("GET", "/keys/self").json()["id"]}


@pytest.mark.parametrize("name", LISTS)
@pytest.mark.parametrize("method", ["PUT", "DELETE"])
def test_nobody_but_an_owner_changes_a_list(office: Office, name: str, method: str) -> None:
    agent = office.hire()
    for role in ("member", "approver"):
        assert refusal(office.ask(method, f"/a2a/{name}", LISTS[name], role)) == (403, "QWED-AUTH-003")
    token = agent["agent_token"]
    assert refusal(office.ask(method, f"/a2a/{name}", LISTS[name], "", token)) == (403, "QWED-AUTH-003")
    assert shown(office)[name] == []


def test_the_lists_of_one_organisation_say_nothing_to_another(server: Server, office: Office) -> None:
    elsewhere = open_office(office.client, server.owner_key)
    for name, entry in LISTS.items():
        office.ask("PUT", f"/a2a/{name}", entry)
    assert shown(elsewhere) == {"blocks": [], "pairs": [], "trusted": []}
    assert refusal(elsewhere.ask("DELETE", "/a2a/blocks", LISTS["blocks"])) == (404, "QWED-REQ-007")
    assert said(office.verdict("mallory")) == ("blocked", "trust_boundary")
    assert said(elsewhere.verdict("mallory")) == ("forwarded", "passthrough")


def test_a_blocked_agent_sends_and_receives_nothing_however_it_spells_its_name(office: Office) -> None:
    office.ask("PUT", "/a2a/blocks", {"agent_id": "mallory"})
    for sender, receiver in (("mallory", "bob"), ("MALLORY", "bob"), ("bob", "mallory"), ("bob", " Mallory ")):
        assert said(office.verdict(sender, receiver)) == ("blocked", "trust_boundary")
    office.ask("DELETE", "/a2a/blocks", {"agent_id": "mallory"})
    assert said(office.verdict("mallory", "bob")) == ("forwarded", "passthrough")


def test_a_blocked_pair_is_blocked_in_one_direction(office: Office) -> None:
    office.ask("PUT", "/a2a/pairs", LISTS["pairs"])
    assert said(office.verdict("shop", "payroll")) == ("blocked", "trust_boundary")
    assert said(office.verdict("payroll", "shop")) == ("forwarded", "passthrough")
    assert said(office.verdict("shop", "stock")) == ("forwarded", "passthrough")


def test_a_guard_sees_nothing_of_what_the_boundary_refuses_and_trust_opens_no_block(office: Office) -> None:
    for name in ("blocks", "trusted"):
        office.ask("PUT", f"/a2a/{name}", {"agent_id": "both"})
    verdict = office.verdict("both", payload=WRONG["code_execution"], kind="code_execution")
    assert said(verdict) == ("blocked", "trust_boundary")


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
def test_what_is_no_entry_is_refused_by_name(office: Office, name: str, body: Any, code: str) -> None:
    for method in ("PUT", "DELETE"):
        assert refusal(office.ask(method, f"/a2a/{name}", body)) == (400, code)


# Where an operator has set something else


@pytest.fixture(scope="module")
def narrow(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Office]:
    """Strict, two messages a minute of a pair, and payloads larger than bodies otherwise are."""
    settings = {
        "QWED_A2A_STRICT": "true",
        "QWED_A2A_MESSAGES_PER_MINUTE": "2",
        "QWED_A2A_MAX_PAYLOAD_BYTES": str(LARGE),
    }
    running = Server(Path(tmp_path_factory.mktemp("strict")) / "data", **settings)
    with httpx.Client(base_url=running.base_url, timeout=30) as client:
        yield open_office(client, running.owner_key)
    assert running.stop() == 0


def test_where_it_is_strict_only_registered_and_trusted_senders_send(narrow: Office) -> None:
    assert said(narrow.verdict("a passer-by")) == ("blocked", "trust_boundary")
    narrow.ask("PUT", "/a2a/trusted", {"agent_id": "ledger"})
    assert said(narrow.verdict("ledger")) == ("forwarded", "bypass")
    agent = narrow.hire()
    assert said(narrow.verdict(agent["agent_id"], token=agent["agent_token"])) == ("forwarded", "passthrough")


def test_a_pair_that_sends_too_fast_is_stopped_and_others_are_not(narrow: Office) -> None:
    agent = narrow.hire()
    sent = [narrow.verdict(agent["agent_id"], "bob", token=agent["agent_token"]) for _ in range(4)]
    assert [verdict["status"] for verdict in sent] == ["forwarded", "forwarded", "blocked", "blocked"]
    assert {verdict["engine_used"] for verdict in sent[2:]} == {"trust_boundary"}
    assert said(narrow.verdict(agent["agent_id"], "carol", token=agent["agent_token"])) == ("forwarded", "passthrough")
    # One leaf stands for a minute of them, and every attestation holds.
    assert sent[2]["activity_id"] == sent[3]["activity_id"]
    for verdict in sent:
        checked = narrow.ask("POST", "/attestation/verify", {"jwt": verdict["attestation_jwt"]}, role="").json()
        assert checked["error"] is None


@pytest.mark.drill
def test_a_large_payload_is_taken_from_whom_is_known_before_it_is_read(narrow: Office) -> None:
    agent = narrow.hire()
    body = {"sender_agent_id": agent["agent_id"], "receiver_agent_id": "dora", "payload": {"text": "x" * (LARGE - 20)}}
    shown = {"Authorization": f"Bearer {agent['agent_token']}"}
    named = shown | {"QWED-Agent-Id": agent["agent_id"]}
    assert said(narrow.ask("POST", "/a2a/intercept", body).json()) == ("forwarded", "passthrough")
    assert said(narrow.client.post("/a2a/intercept", json=body, headers=named).json()) == ("forwarded", "passthrough")
    for headers in ({}, shown, shown | {"QWED-Agent-Id": "agent_" + "0" * 24}):
        assert refusal(narrow.client.post("/a2a/intercept", json=body, headers=headers)) == (413, "QWED-REQ-002")
    more = {**body, "payload": {"text": "x" * LARGE}}
    assert refusal(narrow.ask("POST", "/a2a/intercept", more)) == (413, "QWED-REQ-002")


# Where it is installed without what messages need

_WITHOUT = """
import sys
from pathlib import Path
sys.modules["pydantic"] = None
from qwed.cli.serve import _run
sys.exit(_run(port=0, data_dir=Path(sys.argv[-1])))
"""
"""Past the command line, whose own library has pydantic read what is typed."""


@pytest.mark.drill
def test_a_server_without_what_reads_messages_starts_and_says_what_is_missing(tmp_path: Path) -> None:
    bare = Server(tmp_path / "data", (sys.executable, "-c", _WITHOUT))
    with httpx.Client(base_url=bare.base_url, timeout=30) as client:
        office = Office(client, {"owner": bare.owner_key})
        assert office.ask("GET", "/a2a/health", role="").json()["status"] == "unavailable"
        for answer in (office.send(), office.ask("GET", "/a2a/metrics")):
            assert refusal(answer) == (503, "QWED-SYS-002")
            assert "`pydantic`" in answer.json()["error"]["message"]
        assert office.ask("PUT", "/a2a/blocks", {"agent_id": "mallory"}).status_code == 200
    assert bare.stop() == 0
