"""Attacks on approvals, long polls, the kill switch and the audit log."""

import itertools
import json
import socket
import sqlite3
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpx
import pytest

from qwed.domain.write_set import Notice
from qwed.gate import Gate, GateError
from qwed.store.change_handlers import notice_statements
from tests.conftest import AgentConversation
from tests.spec.conftest import Keyholders, SpecServer
from tests.spec.requests import EMAIL, SUM, WRITE, Json, action_of, another, refusal_of, settle
from tests.spec.sections import spec
from tests.support.gate_factory import open_gate
from tests.support.manual_clock import ManualClock
from tests.support.metrics_scrape import Scrape
from tests.support.polling import until
from tests.support.raw_http import message, send_concurrently
from tests.support.server import Server
from tests.support.store_parts import StoreParts
from tests.support.stored_rows import StoredRows
from tests.support.stores import StoreFixture

DAY = 86_400
SECRET = "ghp_" + "aB3d" * 9
MANY = 300_000
"""Values in one body of less than a mebibyte, which would take seconds to parse."""

_steps = itertools.count(1)


def _ask(gate: Gate, agent_id: str, action: Json) -> Json:
    return dict(gate.verify_action(agent_id, action, {"conversation_id": f"c{next(_steps)}", "step_number": 1}))


def _token(spec_server: SpecServer, ask: AgentConversation) -> httpx.Client:
    return spec_server.client(token=ask.agent["agent_token"])


# Large bodies, pages and backlogs do not delay others


_FULL_OF_VALUES: dict[str, tuple[str, bytes]] = {
    "a question": ("/agents/{agent}/verify", b'{"action": [%s]}' % b",".join([b"{}"] * MANY)),
    "a result": (
        "/agents/{agent}/actions/act_1/execution",
        b'{"success":true,"result":[%s]}' % b"1,".join([b""] * MANY),
    ),
    "evidence": ("/agents/{agent}/trust", b'{"to_level":3,"evidence":{"a":[%s]}}' % b",".join([b"{}"] * MANY)),
}


@spec("9.6")
@pytest.mark.parametrize("what", _FULL_OF_VALUES)
def test_a_body_of_a_third_of_a_million_values_is_refused_unread(
    spec_server: SpecServer, keyholders: Keyholders, what: str
) -> None:
    ask = keyholders.create_agent(trust_level=2)
    path, body = _FULL_OF_VALUES[what]
    body = body.replace(b",]", b",1]")
    with _token(spec_server, ask) as agent:
        answer = agent.post(path.format(agent=ask.agent_id), content=body)
    assert refusal_of(answer) == (413, "QWED-REQ-002")
    assert "values" in answer.text


@spec("9.8")
def test_a_stranger_cannot_make_us_read_a_third_of_a_million_values(spec_server: SpecServer) -> None:
    path, body = _FULL_OF_VALUES["a question"]
    with spec_server.client() as stranger:
        answer = stranger.post(path.format(agent="agent_1"), content=body)
    assert answer.status_code == 413


@spec("7.2")
@pytest.mark.sqlite("the pages of a file are read over one connection, which one reader holds at a time")
def test_a_decision_does_not_wait_for_a_page_of_history(tmp_path: Path) -> None:
    with open_gate(tmp_path / "data") as gate:
        agent = gate.register_agent(name="a", principal_id="user_1")["agent_id"]
        # After a change, the next decision looks for expired approvals.
        gate.suspend_agent(agent, reason="a look")
        gate.reactivate_agent(agent, reason="all is well")
        decided = threading.Event()

        def decide() -> None:
            _ask(gate, agent, SUM)
            decided.set()

        with StoreParts(gate.services.store).report_lock:  # a reader of a long page holds it
            asking = threading.Thread(target=decide)
            asking.start()
            in_time = decided.wait(60)
        asking.join()
    assert in_time


@spec("4.3")
def test_a_page_of_approvals_is_no_larger_than_a_page_of_activities(keyholders: Keyholders) -> None:
    ask = keyholders.create_agent()
    for number in range(7):
        letter = {"type": "send_email", "parameters": {"to": f"u{number}@example.com", "body": "x " * 490_000}}
        assert ask(letter, number + 1)["decision"] == "PENDING"
    page = keyholders.approver.get("/approvals", params={"agent_id": ask.agent_id, "limit": 1000})
    assert len(page.content) < 6 << 20
    assert page.json()["next_cursor"] is not None


@spec("2.3")
@pytest.mark.sqlite("the steps of its virtual machine are counted")
def test_a_notice_costs_as_much_whether_ten_or_ten_thousand_wait(tmp_path: Path) -> None:
    StoreFixture("file", tmp_path, ManualClock()).store.close()

    def work_with(waiting: int) -> int:
        with closing(sqlite3.connect(tmp_path / "qwed.db", isolation_level=None)) as database:
            database.execute("DELETE FROM outbox")
            rows = [(f"ntc_{number}", "org_1", "failed", "{}", 1.0, 1.0, 0) for number in range(waiting)]
            database.executemany("INSERT INTO outbox VALUES (?, ?, ?, ?, ?, ?, ?)", rows)
            done = itertools.count()
            database.set_progress_handler(lambda: next(done) and None, 100)
            for statement, values in notice_statements("org_1", (Notice("ntc_new", "failed", "{}"),), 2.0):
                database.execute(statement, values)
            database.set_progress_handler(None, 0)
        database.close()
        return next(done)

    assert work_with(9_000) <= 4 * work_with(10) + 4


@spec("6.1")
def test_an_agent_cannot_count_its_own_record_out_of_reach() -> None:
    manual_clock = ManualClock()
    with open_gate(clock=manual_clock.clock()) as gate:
        agent = gate.register_agent(name="a", principal_id="user_1", trust_level=2)["agent_id"]
        for _day in range(3):
            for _ in range(4_000):
                _ask(gate, agent, {**SUM, "cost": {"usd": 999_999_999}})
            manual_clock.advance(DAY)
        assert len(gate.get_agent_activity(agent, limit=1)) == 1


# Long polls


def _waiting_request(path: str, token: str) -> bytes:
    return f"GET {path}?wait=60 HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {token}\r\n\r\n".encode()


@spec("4.3")
def test_who_has_hung_up_waits_no_longer(spec_server: SpecServer, keyholders: Keyholders) -> None:
    ask = keyholders.create_agent()
    path = f"/agents/{ask.agent_id}/actions/{ask(EMAIL, 1)['action_id']}"
    place = urlsplit(spec_server.base_url)
    scrape = Scrape(spec_server.base_url, spec_server.keys["owner"])
    before = scrape.value("qwed_long_polls_open")
    with ExitStack() as lines:
        for _ in range(8):
            line = lines.enter_context(socket.create_connection((place.hostname, place.port or 80)))
            line.sendall(_waiting_request(path, ask.agent["agent_token"]))
        scrape.wait_until("qwed_long_polls_open", before + 8)
    scrape.wait_until("qwed_long_polls_open", before)


@pytest.fixture
def waiting(
    spec_server: SpecServer, keyholders: Keyholders
) -> Iterator[Callable[[httpx.Client, AgentConversation, Json], Any]]:
    """Start a long poll and return once the server holds it."""
    with ThreadPoolExecutor(4) as threads:
        scrape = Scrape(spec_server.base_url, spec_server.keys["owner"])

        def begin(client: httpx.Client, ask: AgentConversation, pending: Json) -> Any:
            before = scrape.value("qwed_long_polls_open")
            path = f"/agents/{ask.agent_id}/actions/{pending['action_id']}"
            answer = threads.submit(client.get, path, params={"wait": 30})
            scrape.wait_until("qwed_long_polls_open", before + 1)
            return answer

        yield begin


@spec("9.8")
def test_a_token_that_was_replaced_gets_nothing_from_a_wait_begun_before(
    spec_server: SpecServer, keyholders: Keyholders, waiting: Callable[[httpx.Client, AgentConversation, Json], Any]
) -> None:
    ask = keyholders.create_agent(trust_level=2)
    pending = ask(WRITE, 1)
    with _token(spec_server, ask) as thief:
        answer = waiting(thief, ask, pending)
        assert keyholders.owner.post(f"/agents/{ask.agent_id}/rotate-token").status_code == 200
        assert settle(keyholders.approver, pending["approval_id"]).status_code == 200
        assert answer.result(60).status_code == 401


@spec("9.8")
def test_a_key_that_was_revoked_gets_nothing_from_a_wait_begun_before(
    spec_server: SpecServer, keyholders: Keyholders, waiting: Callable[[httpx.Client, AgentConversation, Json], Any]
) -> None:
    ask = keyholders.create_agent(trust_level=2)
    pending = ask(WRITE, 1)
    made = keyholders.owner.post("/keys", json={"name": "short", "role": "member"}).json()
    with spec_server.client(made["key"]) as former:
        answer = waiting(former, ask, pending)
        assert keyholders.owner.delete(f"/keys/{made['id']}").status_code == 200
        assert settle(keyholders.approver, pending["approval_id"]).status_code == 200
        assert answer.result(60).status_code == 401


# The kill switch


@spec("8.3")
@pytest.mark.parametrize("path", ["/suspend-all", "/agents/{agent}/suspend"])
def test_nobody_is_told_that_it_is_stopped_before_that_is_durable(tmp_path: Path, path: str) -> None:
    server = Server(tmp_path / "data")
    with httpx.Client(base_url=server.base_url, headers={"X-API-Key": server.owner_key}, timeout=30) as owner:
        agent = owner.post("/agents/register", json={"name": "a", "principal_id": "user_1"}).json()["agent_id"]
        stop = message(path.format(agent=agent), {"reason": "stop"}, {"x-api-key": server.owner_key})
        with StoredRows(server.data_dir).unreachable():
            heard = [each for _ in range(6) for each in send_concurrently(server.base_url, [stop] * 16, 16)]
        status = until(lambda: owner.get(f"/agents/{agent}").json().get("status"))
    server.stop()
    assert status == "active"
    assert {each.status for each in heard if each is not None} == {503}


@spec("8.3")
@pytest.mark.parametrize("path", ["/agents/{agent}/suspend", "/suspend-all"])
def test_an_agent_that_was_stopped_after_the_approval_does_not_get_its_permission(
    spec_server: SpecServer, new_keyholders: Keyholders, path: str
) -> None:
    ask = new_keyholders.create_agent(trust_level=2)
    with _token(spec_server, ask) as agent:
        pending = AgentConversation(agent, ask.agent)(WRITE, 1)
        assert settle(new_keyholders.approver, pending["approval_id"]).status_code == 200
        assert new_keyholders.owner.post(path.format(agent=ask.agent_id), json={"reason": "stop"}).status_code == 200
        shown = action_of(ask, pending["action_id"], agent)
    assert (shown["attestation"], shown["verified_query"]) == (None, None)
    assert (shown["decision"], shown["error"]["code"]) == ("DENIED", "QWED-AGENT-003")


@spec("8.3", "4.3")
def test_what_needed_no_proof_reads_as_refused_too_once_its_agent_is_stopped(new_keyholders: Keyholders) -> None:
    ask = new_keyholders.create_agent()
    asked = ask(SUM, 1)
    assert action_of(ask, asked["action_id"])["decision"] == "APPROVED"
    assert new_keyholders.member.post(f"/agents/{ask.agent_id}/complaint", json={"reason": "odd"}).status_code == 200
    shown = action_of(ask, asked["action_id"])
    assert (shown["decision"], shown["first_decision"]) == ("DENIED", "APPROVED")
    (kept,) = ask.activity()["activities"]
    assert (kept["decision"], kept["error"]) == ("APPROVED", None)


@spec("8.3")
def test_a_stored_approval_is_not_repeated_once_everything_is_stopped(new_keyholders: Keyholders) -> None:
    ask = new_keyholders.create_agent()
    body = {"action": SUM, "context": {"conversation_id": "c", "step_number": 1}}
    assert ask.send(body, {"Idempotency-Key": "again"}).json()["decision"] == "APPROVED"
    waits = ask(EMAIL, 2, conversation="d")
    assert new_keyholders.member.post("/suspend-all", json={"reason": "stop"}).status_code == 200
    assert refusal_of(ask.send(body, {"Idempotency-Key": "again"})) == (403, "QWED-AGENT-003")
    assert settle(new_keyholders.approver, waits["approval_id"]).status_code == 409
    assert new_keyholders.member.post("/reactivate-all", json={"reason": "go"}).status_code == 403


# Trust


@pytest.fixture
def manual_clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
def gate(manual_clock: ManualClock) -> Iterator[Gate]:
    """A gate with low thresholds: one day and twenty actions."""
    with open_gate(clock=manual_clock.clock(), trust_min_days=1, trust_min_actions=20) as opened:
        yield opened


@spec("8.2")
def test_what_people_rejected_is_no_evidence_for_more_trust(gate: Gate, manual_clock: ManualClock) -> None:
    agent = gate.register_agent(name="a", principal_id="user_1")["agent_id"]
    for number in range(20):
        waits = _ask(gate, agent, {**EMAIL, "parameters": {"to": f"u{number}@example.com"}})
        gate.reject(waits["approval_id"], reason="certainly not")
    manual_clock.advance(DAY)
    with pytest.raises(GateError, match="not enough evidence"):
        gate.request_trust_change(agent, 2)


@spec("8.2")
def test_what_the_budget_refused_is_no_evidence_for_more_trust(gate: Gate, manual_clock: ManualClock) -> None:
    agent = gate.register_agent(name="a", principal_id="user_1", budget={"max_requests_per_hour": 1})["agent_id"]
    for number in range(21):
        _ask(gate, agent, another(number))
    manual_clock.advance(DAY)
    level = gate.get_agent(agent)["trust_level"]
    with pytest.raises(GateError, match="not enough evidence"):
        gate.request_trust_change(agent, level + 1)


def _proven(gate: Gate, manual_clock: ManualClock) -> str:
    agent: str = gate.register_agent(name="a", principal_id="user_1")["agent_id"]
    for number in range(150):
        _ask(gate, agent, another(number))
    manual_clock.advance(DAY)
    gate.approve(gate.request_trust_change(agent, 2)["approval_id"], reason="earned")
    return agent


@spec("8.2")
def test_one_record_does_not_earn_two_levels(gate: Gate, manual_clock: ManualClock) -> None:
    agent = _proven(gate, manual_clock)
    with pytest.raises(GateError, match="not enough evidence"):
        gate.request_trust_change(agent, 3)


@spec("8.2", "8.3")
def test_trust_lost_to_a_violation_is_not_asked_back_in_the_same_second(gate: Gate, manual_clock: ManualClock) -> None:
    agent = _proven(gate, manual_clock)
    _ask(gate, agent, {"type": "execute_code", "code": "eval('1')"})
    assert gate.get_agent(agent)["trust_level"] == 0
    with pytest.raises(GateError, match="not enough evidence"):
        gate.request_trust_change(agent, 1)


@spec("8.2")
def test_a_request_that_ran_out_does_not_stand_in_the_way_of_the_next(gate: Gate, manual_clock: ManualClock) -> None:
    agent: str = gate.register_agent(name="a", principal_id="user_1")["agent_id"]
    for number in range(20):
        _ask(gate, agent, another(number))
    manual_clock.advance(DAY)
    first = gate.request_trust_change(agent, 2)
    manual_clock.advance(DAY + 1)
    assert gate.request_trust_change(agent, 2)["approval_id"] != first["approval_id"]


@spec("8.2", "7.2")
def test_a_secret_in_a_justification_is_masked(gate: Gate, manual_clock: ManualClock) -> None:
    agent: str = gate.register_agent(name="a", principal_id="user_1", trust_level=2)["agent_id"]
    for number in range(20):
        _ask(gate, agent, another(number))
    manual_clock.advance(DAY)
    gate.request_trust_change(agent, 3, justification=f"here is {SECRET}")
    gate.reduce_trust(agent, 1, f"it said {SECRET}")
    kept = [*gate.get_agent_activity(agent, kind="all"), *gate.list_approvals()]
    assert SECRET not in json.dumps([dict(each) for each in kept])


# Separation of duties


@spec("2.3")
def test_a_token_in_the_body_does_not_hide_the_key_that_asks(keyholders: Keyholders) -> None:
    ask = keyholders.create_agent(trust_level=2)
    body = {"action": WRITE, "context": {"conversation_id": "c", "step_number": 1}}
    asked = keyholders.approver.post(
        f"/agents/{ask.agent_id}/verify", json={**body, "agent_token": ask.agent["agent_token"]}
    ).json()
    assert refusal_of(settle(keyholders.approver, asked["approval_id"])) == (403, "QWED-AUTH-004")


@spec("2.3", "6.2")
def test_of_many_who_settle_at_once_one_does(spec_server: SpecServer, keyholders: Keyholders) -> None:
    ask = keyholders.create_agent(trust_level=2, budget={"max_daily_cost_usd": 100})
    charged = 0
    for number in range(4):
        waits = ask({"type": "file_write", "target": f"r/{number}.txt", "cost": {"usd": 1}}, number + 1)
        messages = [
            message(f"/approvals/{waits['approval_id']}/{verb}", {"reason": "r"}, {"x-api-key": spec_server.keys[role]})
            for verb in ("approve", "reject")
            for role in ("owner", "approver")
        ] * 2
        heard = send_concurrently(spec_server.base_url, messages, len(messages))
        settled = [each.json for each in heard if each is not None and each.status == 200]
        assert len(settled) == 1
        charged += settled[0]["state"] == "approved"
    cost = ask.budget()["cost"]
    assert (cost["current_daily_usd"], cost["held_usd"]) == (charged, 0)


@spec("7.2")
@pytest.mark.parametrize("reason", ["\u200b", "\u2060\ufeff", "\u202e \u202c", "\x1b"], ids=ascii)
def test_a_reason_that_cannot_be_seen_is_none(keyholders: Keyholders, reason: str) -> None:
    ask = keyholders.create_agent()
    assert ask.api.post(f"/agents/{ask.agent_id}/complaint", json={"reason": reason}).status_code == 400


_UNREADABLE = (
    "",
    " \n\t",
    "\u200b",
    "a\u202eb",
    "a\u200fb",
    "a\u2066b",
    "a\x1b[2Jb",
    "a\x00b",
    "a\x7fb",
    "a\x85b",
    "a\rb",
)
_READABLE = (
    "x",
    "two\nlines,\ta tab",
    "Gr\u00fc\u00dfe \u4f60\u597d",
    "\u05e9\u05dc\u05d5\u05dd",
    "\U0001f469\u200d\U0001f4bb",
)


def _told(keyholders: Keyholders, text: str) -> list[int]:
    """Return the answer of each route that stores free text, for this text."""
    ask = keyholders.create_agent(trust_level=2)
    approval = ask(WRITE, 1)["approval_id"]
    asked = (
        keyholders.owner.post("/organisations", json={"name": text}),
        keyholders.owner.post("/keys", json={"name": text, "role": "member"}),
        settle(keyholders.approver, approval, approver=text),
        settle(keyholders.approver, approval, "reject", reason=text),
        keyholders.member.post(f"/agents/{ask.agent_id}/suspend", json={"reason": text}),
        keyholders.owner.post(f"/agents/{ask.agent_id}/reactivate", json={"reason": text}),
        keyholders.member.post(f"/agents/{ask.agent_id}/complaint", json={"reason": text}),
    )
    return [each.status_code for each in asked]


@spec("7.2")
@pytest.mark.parametrize("text", _UNREADABLE, ids=ascii)
def test_a_text_that_does_not_read_as_it_is_written_is_not_kept(keyholders: Keyholders, text: str) -> None:
    assert set(_told(keyholders, text)) == {400}


@spec("7.2")
@pytest.mark.parametrize("text", _READABLE, ids=ascii)
def test_a_text_of_any_language_is_kept(keyholders: Keyholders, text: str) -> None:
    # Approved first, so that there is nothing left to reject.
    assert _told(keyholders, text) == [201, 201, 200, 409, 200, 200, 200]


# Other organisations


@spec("7.2")
def test_a_cursor_does_not_count_what_others_do(keyholders: Keyholders, new_keyholders: Keyholders) -> None:
    foreign_agent, ask = keyholders.create_agent(), new_keyholders.create_agent()

    def cursor() -> Any:
        for _ in range(2):
            new_keyholders.owner.post("/keys", json={"name": "k", "role": "member"})
        return new_keyholders.owner.get("/changes", params={"limit": 1}).json()["next_cursor"]

    def step(busy: int) -> int:
        before = int(cursor())
        for number in range(busy):
            foreign_agent(another(number), next(_steps), conversation=f"c{next(_steps)}")
        return int(cursor()) - before

    assert step(0) == step(9)
    assert ask.activity()["next_cursor"] is None


@spec("7.2")
def test_the_log_of_a_new_organisation_begins_with_its_first_key(spec_server: SpecServer) -> None:
    with spec_server.client("owner") as operator:
        made = operator.post("/organisations", json={"name": "new"}).json()
    with spec_server.client(made["owner_key"]) as owner:
        (key,) = owner.get("/keys").json()["keys"]
        (first,) = owner.get("/changes").json()["changes"]
    assert (first["event"], first["log_index"], first["by"]) == ("key_added", 0, "qwed")
    assert first["change"] == {"about": key["id"], "name": key["name"], "role": "owner"}
