"""Spec 4.3, PENDING: the agent long-polls and is notified as soon as a person decides."""

import socket
import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from urllib.parse import urlsplit

import httpx
import pytest

from qwed.api.server.admission import MAX_LONG_POLLS_PER_ORGANISATION
from tests.conftest import AgentConversation
from tests.spec.conftest import Keyholders, SpecServer, keyholders_of, start_spec_server
from tests.spec.requests import EMAIL, FALSE, SUM, WRONG_SUM, Json, action_of, refusal_of, settle
from tests.spec.sections import spec
from tests.support.metrics_scrape import Scrape

WAIT = 60
PATIENCE = 50
"""Shorter than the long poll: a missing notification fails the test."""


class Waiter:
    """Long-polls an action on its own connection."""

    def __init__(self, spec_server: SpecServer, ask: AgentConversation, action_id: str) -> None:
        self._scrape = Scrape(spec_server.base_url, spec_server.keys["owner"])
        self._url = f"{spec_server.base_url}/agents/{ask.agent_id}/actions/{action_id}"
        self._headers = {"Authorization": f"Bearer {ask.agent['agent_token']}"}

    def __call__(self) -> Json:
        heard = httpx.get(self._url, params={"wait": WAIT}, headers=self._headers, timeout=PATIENCE)
        assert heard.status_code == 200, heard.text
        read: Json = heard.json()
        return read

    def until_it_waits(self) -> None:
        for _ in range(5_000):
            text = self._scrape.text()
            if any(f"{name} 1" in text for name in ("qwed_requests_in_flight", "qwed_long_polls_open")):
                return
        raise AssertionError("nobody waits")


def _heard_while(spec_server: SpecServer, ask: AgentConversation, action_id: str, decide: Callable[[], object]) -> Json:
    waiter = Waiter(spec_server, ask, action_id)
    with ThreadPoolExecutor(1) as pool:
        heard: Future[Json] = pool.submit(waiter)
        waiter.until_it_waits()
        assert not heard.done()
        decide()
        return heard.result(PATIENCE)


@spec("4.3")
def test_who_waits_hears_the_approval_at_once(spec_server: SpecServer, keyholders: Keyholders) -> None:
    ask = keyholders.create_agent()
    waiting = ask(EMAIL, 1)
    heard = _heard_while(
        spec_server,
        ask,
        waiting["action_id"],
        lambda: settle(keyholders.approver, waiting["approval_id"], reason="go on"),
    )
    assert (heard["decision"], heard["first_decision"], heard["error"]) == ("APPROVED", "PENDING", None)
    assert heard["attestation"]
    assert heard["resolution"]["reason"] == "go on"
    assert heard == action_of(ask, waiting["action_id"])


@spec("4.3")
def test_who_waits_hears_the_rejection_at_once(spec_server: SpecServer, keyholders: Keyholders) -> None:
    ask = keyholders.create_agent()
    waiting = ask(EMAIL, 1)
    heard = _heard_while(
        spec_server,
        ask,
        waiting["action_id"],
        lambda: settle(keyholders.approver, waiting["approval_id"], "reject", reason="no"),
    )
    assert (heard["decision"], heard["attestation"]) == ("DENIED", None)
    assert (heard["resolution"]["state"], heard["resolution"]["reason"]) == ("rejected", "no")


@spec("4.3")
def test_many_wait_for_one_decision_and_all_hear_it(spec_server: SpecServer, keyholders: Keyholders) -> None:
    ask = keyholders.create_agent()
    waiting = ask(EMAIL, 1)
    waiter = Waiter(spec_server, ask, waiting["action_id"])
    start = threading.Barrier(9)

    def wait() -> str:
        start.wait(PATIENCE)
        decision: str = waiter()["decision"]
        return decision

    with ThreadPoolExecutor(8) as pool:
        heard = [pool.submit(wait) for _ in range(8)]
        start.wait(PATIENCE)
        settle(keyholders.approver, waiting["approval_id"])
        assert {each.result(PATIENCE) for each in heard} == {"APPROVED"}


@spec("4.3")
def test_the_decision_on_another_action_wakes_nobody(spec_server: SpecServer, keyholders: Keyholders) -> None:
    ask = keyholders.create_agent()
    mine, other = ask(EMAIL, 1), ask(EMAIL, 2)

    def decide() -> None:
        settle(keyholders.approver, other["approval_id"])
        settle(keyholders.approver, mine["approval_id"], "reject")

    assert _heard_while(spec_server, ask, mine["action_id"], decide)["decision"] == "DENIED"


@spec("4.3")
@pytest.mark.parametrize(("action", "decision"), [(SUM, "APPROVED"), (WRONG_SUM, "CORRECTED"), (FALSE, "DENIED")])
def test_what_is_decided_already_is_not_waited_for(
    spec_server: SpecServer, keyholders: Keyholders, action: Json, decision: str
) -> None:
    ask = keyholders.create_agent()
    assert Waiter(spec_server, ask, ask(action, 1)["action_id"])()["decision"] == decision


@spec("4.3")
def test_what_was_settled_before_is_not_waited_for(spec_server: SpecServer, keyholders: Keyholders) -> None:
    ask = keyholders.create_agent()
    waiting = ask(EMAIL, 1)
    settle(keyholders.approver, waiting["approval_id"])
    assert Waiter(spec_server, ask, waiting["action_id"])()["decision"] == "APPROVED"


@spec("4.3")
def test_a_wait_that_ends_before_the_person_answers_says_pending(keyholders: Keyholders) -> None:
    ask = keyholders.create_agent()
    waiting = ask(EMAIL, 1)
    for seconds in (0, 1):
        action = action_of(ask, waiting["action_id"], wait=seconds)
        assert (action["decision"], action["approval"]["state"]) == ("PENDING", "pending")
        assert action["approval"]["approval_id"] == waiting["approval_id"]
        assert action["error"]["code"] == "QWED-AGENT-TRUST-002"


@spec("4.3")
def test_who_waits_hears_that_time_ran_out(tmp_path: Path) -> None:
    with (
        start_spec_server(tmp_path / "data", QWED_APPROVAL_TTL_SECONDS="1") as spec_server,
        keyholders_of(spec_server) as keyholders,
    ):
        ask = keyholders.create_agent()
        heard = Waiter(spec_server, ask, ask(EMAIL, 1)["action_id"])()
        assert (heard["decision"], heard["approval"]["state"]) == ("DENIED", "expired")
        assert (heard["resolution"]["state"], heard["resolution"]["by"]) == ("expired", "qwed")


@spec("4.3")
@pytest.mark.parametrize("wait", ["-1", "61", "1.5", "", "soon", "1e1", "\u0661", "9" * 30])
def test_a_wait_is_0_to_60_whole_seconds(keyholders: Keyholders, wait: str) -> None:
    ask = keyholders.create_agent()
    action_id = ask(EMAIL, 1)["action_id"]
    response = keyholders.owner.get(f"/agents/{ask.agent_id}/actions/{action_id}", params={"wait": wait})
    assert refusal_of(response) == (400, "QWED-REQ-005")


@spec("4.3")
def test_nobody_waits_for_anothers_action(spec_server: SpecServer, keyholders: Keyholders) -> None:
    ask, other = keyholders.create_agent(), keyholders.create_agent()
    action_id = ask(EMAIL, 1)["action_id"]
    with spec_server.client(token=other.agent["agent_token"]) as agent, spec_server.client("foreign") as foreign:
        for client, status in ((agent, 401), (foreign, 404)):
            response = client.get(f"/agents/{ask.agent_id}/actions/{action_id}", params={"wait": WAIT})
            assert response.status_code == status


OPEN = "qwed_long_polls_open"


def _hang_on(lines: ExitStack, spec_server: SpecServer, ask: AgentConversation, action_id: str) -> socket.socket:
    """Start to wait without reading."""
    place = urlsplit(spec_server.base_url)
    line = lines.enter_context(socket.create_connection((place.hostname, place.port or 80), timeout=PATIENCE))
    path = f"/agents/{ask.agent_id}/actions/{action_id}?wait={WAIT}"
    line.sendall(f"GET {path} HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {ask.agent['agent_token']}\r\n\r\n".encode())
    return line


@spec("4.3", "9.6")
def test_who_hangs_up_gives_the_place_back_and_no_organisation_takes_all_of_them(tmp_path: Path) -> None:
    with (
        start_spec_server(tmp_path / "data", QWED_RATE_LIMIT_PER_KEY="0") as spec_server,
        keyholders_of(spec_server) as keyholders,
    ):
        ask, scrape = keyholders.create_agent(), Scrape(spec_server.base_url, spec_server.keys["owner"])
        first, other = ask(EMAIL, 1), ask(EMAIL, 2)
        with ExitStack() as lines:
            for _ in range(MAX_LONG_POLLS_PER_ORGANISATION):
                _hang_on(lines, spec_server, ask, first["action_id"])
            scrape.wait_until(OPEN, MAX_LONG_POLLS_PER_ORGANISATION)
            # One waiter too many gets the present state at once, also with a key or as another agent.
            assert Waiter(spec_server, ask, first["action_id"])()["decision"] == "PENDING"
            assert action_of(ask, first["action_id"], keyholders.owner, wait=WAIT)["decision"] == "PENDING"
            _others_still_wait(spec_server, scrape)
        scrape.wait_until(OPEN, 0)
        with ThreadPoolExecutor(1) as pool:
            heard = pool.submit(Waiter(spec_server, ask, other["action_id"]))
            scrape.wait_until(OPEN, 1)
            settle(keyholders.approver, other["approval_id"])
            assert heard.result(PATIENCE)["decision"] == "APPROVED"
        assert action_of(ask, first["action_id"])["decision"] == "PENDING"


def _others_still_wait(spec_server: SpecServer, scrape: Scrape) -> None:
    body = {"name": "next door", "principal_id": "user_456"}
    with spec_server.client("foreign") as foreign, ExitStack() as lines:
        theirs = AgentConversation(foreign, foreign.post("/agents/register", json=body).json())
        _hang_on(lines, spec_server, theirs, theirs(EMAIL, 1)["action_id"])
        scrape.wait_until(OPEN, MAX_LONG_POLLS_PER_ORGANISATION + 1)
    scrape.wait_until(OPEN, MAX_LONG_POLLS_PER_ORGANISATION)


@spec("4.3", "8.3")
def test_who_is_stopped_while_it_waits_hears_of_the_approval_and_gets_no_permission(
    spec_server: SpecServer, keyholders: Keyholders
) -> None:
    ask = keyholders.create_agent()
    waiting = ask(EMAIL, 1)

    def decide() -> None:
        assert keyholders.member.post(f"/agents/{ask.agent_id}/suspend", json={"reason": "odd"}).status_code == 200
        assert settle(keyholders.approver, waiting["approval_id"]).status_code == 409
        assert settle(keyholders.approver, waiting["approval_id"], "reject").status_code == 200

    heard = _heard_while(spec_server, ask, waiting["action_id"], decide)
    assert (heard["decision"], heard["attestation"]) == ("DENIED", None)
