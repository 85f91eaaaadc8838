"""Erasure: an erased subject is gone from every answer, file and log line; proofs remain valid."""

import hashlib
import json
import os
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import httpx
import pytest
from joserfc.jwk import KeySet

from qwed.gate import Gate, GateError
from qwed.kernel.privacy.erasure import drop_expired_content
from qwed.ledger.subject_encryption import MASTER_FILE, VaultError
from tests.conftest import AgentConversation
from tests.spec.requests import EMAIL, SUM, Json, action_of, another, refusal_of, settle
from tests.spec.sections import spec
from tests.support.agent_names import unique_name
from tests.support.api_crawler import crawl
from tests.support.data_directory_check import DataDirectoryCheck
from tests.support.gate_factory import open_gate
from tests.support.manual_clock import ManualClock
from tests.support.polling import until
from tests.support.raw_http import message, send_concurrently
from tests.support.receipt_check import require_head, require_receipt, root_of
from tests.support.server import SERVE, Server
from tests.support.store_choice import chosen
from tests.support.stored_rows import StoredRows
from tests.support.webhook_receivers import unused_port

CANARY = "kestrel"
"""Occurs in all content about the two erased subjects and nowhere else."""
ADA, PRINCIPAL, STAYS = "ada@example.com", "user_ada", "user_bob"
GRACE = {"QWED_TRUST_MIN_DAYS": "0", "QWED_TRUST_MIN_ACTIONS": "0", "QWED_TRUST_MAX_DENIAL_RATE": "1"}
DAY = 86_400


def said(place: str) -> str:
    return f"{CANARY} {place}"


RESULT = {"rows": [said("result")]}
QUERY = f"SELECT name FROM {CANARY}_orders WHERE week = 31"
REPEATED: Json = {"type": "calculate", "query": "20 + 22", "target": said("target")}


def mail(number: int) -> Json:
    letter = {"to": f"{CANARY}@example.com", "body": said("mail"), "number": number}
    return {"type": "send_email", "parameters": letter}


class Told:
    """Organisation whose records mention a data subject and a principal everywhere."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.clients = ExitStack()
        self.start()

    def tell(self) -> None:
        """Texts that must be erased, and some that must stay."""
        self._move_in()
        self._act()
        self._act_of_the_principal()

    def start(self) -> None:
        """Start a server on the directory, with a client for each key."""
        self.server = Server(self.directory, QWED_WEBHOOK_ALLOW_PRIVATE="true", **GRACE)
        self.stranger = self.clients.enter_context(httpx.Client(base_url=self.server.base_url, timeout=30))
        self.owner = self.client(self.server.owner_key)

    def client(self, key: str) -> httpx.Client:
        headers = {"X-API-Key": key}
        return self.clients.enter_context(httpx.Client(base_url=self.server.base_url, headers=headers, timeout=30))

    def restart(self) -> None:
        self.clients.close()
        assert self.server.stop() == 0
        self.start()

    def close(self) -> None:
        self.clients.close()
        assert self.server.stop() == 0

    def _move_in(self) -> None:
        owner = self.owner
        self.keys = {
            role: _ok(owner.post("/keys", json={"name": role, "role": role})) for role in ("approver", "member")
        }
        elsewhere = _ok(owner.post("/organisations", json={"name": "elsewhere"}))
        self.foreign_key: str = elsewhere["owner_key"]
        webhook = {"url": f"https://127.0.0.1:{unused_port()}/told", "events": ["pending", "failed", "suspended"]}
        _ok(owner.put("/webhook", json=webhook))
        self.agent = self.create_agent(PRINCIPAL)
        self.other = self.create_agent(STAYS)
        self.stopped = self.create_agent(PRINCIPAL)
        foreign = self.client(self.foreign_key)
        self.foreign = AgentConversation(foreign, _ok(foreign.post("/agents/register", json=_profile(PRINCIPAL))))

    def create_agent(self, principal: str) -> AgentConversation:
        return AgentConversation(self.owner, _ok(self.owner.post("/agents/register", json=_profile(principal))))

    def _act(self) -> None:
        """Make every kind of record about a subject."""
        ask, about = self.agent, {"subject": ADA, "user_intent": said("intent")}
        place = {"conversation_id": said("talk"), "step_number": 1, **about}
        self.keyed = {"action": {"type": "execute_sql", "query": QUERY}, "context": place}
        self.approved = _ok(ask.send(self.keyed, {"Idempotency-Key": said("key")}))
        self.repeated = [ask(REPEATED, step, conversation="again", **about) for step in (1, 2)]
        self.corrected = ask({"type": "calculate", "query": "2+2 = 5", "target": said("sum")}, 3, **about)
        self.denied = ask({"type": "execute_sql", "query": f"DROP TABLE {CANARY}_orders"}, 4, **about)
        self.unknown = ask({"type": f"{CANARY}_dance"}, 4, **about)
        options = {"require_attestation": True, "chain_id": "chain-1"}
        self.attested = ask(
            {"type": "calculate", "query": "1 + 1", "target": said("proof")}, 5, options=options, **about
        )
        self.pending, self.granted, self.refused = (ask(mail(step), step, **about) for step in (6, 7, 8))
        words = {"reason": said("reason"), "approver": said("approver")}
        approver = self.client(self.keys["approver"]["key"])
        assert settle(approver, self.granted["approval_id"], **words).status_code == 200
        assert settle(approver, self.refused["approval_id"], "reject", **words).status_code == 200
        report = {"success": True, "result": RESULT}
        _ok(self.owner.post(f"{self._actions()}/{self.approved['action_id']}/execution", json=report))
        call = {"parameters": {"note": said("parameter")}, "justification": said("justification")}
        call["context"] = {"conversation_id": "tool", "step_number": 1, **about}
        self.tool = self.owner.post(f"/agents/{ask.agent_id}/tools/send_email", json=call).json()
        items = [{"query": f"{said('item')} is 1"}, {"query": "1 = 1", "type": "math"}]
        self.job = _ok(self.owner.post("/verify/batch", json={"items": items, "options": {"subject": ADA}}))
        self.untouched = self.other(SUM, 1, subject="grace@example.com", user_intent="to be kept")
        self.namesake = self.foreign(SUM, 1, subject=ADA, user_intent="to be kept")

    def _act_of_the_principal(self) -> None:
        """Make records without a data subject, which are about the principal."""
        self.own = self.agent({**SUM, "target": said("own")}, 9, user_intent=said("own intent"))
        wish = {"request": "trust_elevation", "to_level": 2, "justification": said("wish")}
        self.wish = _ok(self.owner.post(f"/agents/{self.agent.agent_id}/trust", json=wish))
        _ok(self.owner.post(f"/agents/{self.stopped.agent_id}/suspend", json={"reason": said("suspension")}))
        self.own_pending = self.agent(mail(10), 10)

    def _actions(self) -> str:
        return f"/agents/{self.agent.agent_id}/actions"

    def answers(self) -> list[Json]:
        """Return every answer about the subject."""
        single = [self.approved, self.corrected, self.denied, self.unknown, self.attested, self.tool]
        return [*single, *self.repeated, self.pending, self.granted, self.refused]

    def look(self) -> dict[str, str]:
        """Return everything that its owner can read."""
        approvals = [each["approval_id"] for each in self.owner.get("/approvals?limit=1000").json()["approvals"]]
        log = self.owner.get(f"/agents/{self.agent.agent_id}/activity?kind=all&limit=1000").json()["activities"]
        attestations = [each["attestation_id"] for each in log if each["attestation_id"] is not None]
        ids = {
            "agent_id": [self.agent.agent_id, self.stopped.agent_id],
            "action_id": [each["activity_id"] for each in log],
            "approval_id": approvals,
            "attestation_id": attestations,
            "job_id": [self.job["job_id"]],
            "policy_id": [one["policy"] for one in self.owner.get("/policies").json()["policies"]],
        }
        return crawl(self.owner, ids)

    def files(self) -> bytes:
        """Return every byte of the data directory and of the server's output."""
        return StoredRows(self.directory).bytes() + self.server.log.read_bytes()

    def row(self, statement: str) -> Any:
        return [tuple(row.values()) for row in StoredRows(self.directory).rows(statement)]

    def erase(self, subject: str) -> Json:
        return _ok(self.owner.post("/audit/erase", json={"subject": subject}))

    def activity(self, answer: Json) -> Json:
        shown = self.agent.activity(kind="all", limit=1000)["activities"]
        return next(each for each in shown if each["activity_id"] == answer["action_id"])


def _profile(principal: str) -> Json:
    return {
        "name": unique_name("an agent"),
        "principal_id": principal,
        "trust_level": 1,
        "budget": {"max_daily_cost_usd": 5},
    }


def _ok(response: httpx.Response) -> Json:
    assert response.status_code < 300, response.text
    read: Json = response.json()
    return read


class Erased:
    """Yield the organisation before and after the erasure, and after a restart."""

    def __init__(self, told: Told) -> None:
        self.told = told
        self.keys = KeySet.import_key_set(told.stranger.get("/.well-known/jwks.json").json())
        self.before = told.look()
        self.files_before = told.files()
        self.wrapped = [row[0] for row in told.row("SELECT key FROM subjects WHERE key IS NOT NULL")]
        self.budget = told.agent.budget()
        self.summary = told.agent.activity()["summary"]
        self.waiting = told.owner.get("/webhook").json()["waiting"]
        self.erasures = [told.erase(ADA), told.erase(PRINCIPAL)]
        self.after = told.look()
        self.files_after = told.files()
        told.restart()
        told.agent.api = told.other.api = told.owner
        told.foreign.api = told.client(told.foreign_key)
        self.later = told.look()
        self.files_later = told.files()


@pytest.fixture(scope="module")
def erased(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Erased]:
    told = Told(Path(tmp_path_factory.mktemp("erasure")) / "data")
    try:
        told.tell()
        yield Erased(told)
    finally:
        told.close()
    # Later entries count too: the log is one tree under signed heads, and every counter agrees with it.
    DataDirectoryCheck(told.directory).require_consistent()


SHOWN = (
    *("_orders WHERE", "intent", "talk", "target", "sum", "_dance", "proof", "mail", "reason", "approver", "parameter"),
    *("justification", "item", "own intent", "wish", "suspension"),
)


@spec("7.1")
@pytest.mark.parametrize("place", SHOWN)
def test_before_it_is_erased_everything_that_was_said_is_shown(erased: Erased, place: str) -> None:
    text = f"{CANARY}{place}" if place.startswith("_") else said(place)
    assert any(text in answer for answer in erased.before.values())


@spec("7.1")
@pytest.mark.parametrize("when", ["after", "later"])
def test_once_erased_nothing_of_it_is_in_any_answer(erased: Erased, when: str) -> None:
    answers: dict[str, str] = getattr(erased, when)
    assert len(answers) >= len(erased.before)
    assert [url for url, text in answers.items() if CANARY in text.lower()] == []


@spec("7.1")
@pytest.mark.parametrize("when", ["before", "after", "later"])
def test_nothing_of_it_ever_lies_in_a_file_or_a_line_of_the_server(erased: Erased, when: str) -> None:
    files: bytes = getattr(erased, f"files_{when}")
    assert CANARY.encode() not in files.lower()
    asked = {name: value for name, value in erased.told.keyed["action"].items() if value is not None}
    for guessed in (asked, RESULT):
        digest = hashlib.sha256(json.dumps(guessed, sort_keys=True, separators=(",", ":")).encode())
        assert digest.hexdigest().encode() not in files
        assert digest.digest() not in files


@spec("7.1")
def test_the_destroyed_keys_are_in_no_file_any_more(erased: Erased) -> None:
    kept = [row[0] for row in erased.told.row("SELECT key FROM subjects WHERE key IS NOT NULL")]
    gone = [key for key in erased.wrapped if key not in kept]
    assert len(gone) == 2
    for key in gone:
        assert key in erased.files_before
        assert key not in erased.files_after
        assert key not in erased.files_later
    assert all(key in erased.files_later for key in set(erased.wrapped) - set(gone))


@spec("7.1")
def test_an_erased_activity_keeps_its_place_and_loses_its_content(erased: Erased) -> None:
    told = erased.told
    for answer in told.answers():
        entry = told.activity(answer)
        assert (entry["content"], entry["decision"]) == ("erased", answer["decision"])
        for name in ("action", "corrected", "user_intent", "justification", "verification", "error", "conversation_id"):
            assert entry[name] is None, name
        shown = action_of(told.agent, answer["action_id"])
        assert (shown["content"], shown["verified_query"], shown["attestation"]) == ("erased", None, None)


@spec("7.1")
def test_of_an_execution_it_is_still_known_that_it_succeeded(erased: Erased) -> None:
    execution = erased.told.activity(erased.told.approved)["execution"]
    assert (execution["success"], execution["result_hash"]) == (True, None)


@spec("7.1")
@pytest.mark.parametrize(("name", "state"), [("granted", "approved"), ("refused", "rejected"), ("pending", "pending")])
def test_of_an_approval_it_is_still_known_who_settled_it_and_how(erased: Erased, name: str, state: str) -> None:
    told = erased.told
    approval = told.owner.get(f"/approvals/{getattr(told, name)['approval_id']}").json()
    assert (approval["state"], approval["content"], approval["action"]) == (state, "erased", None)
    assert approval["action_hash"] is None
    if state != "pending":
        ended = approval["resolution"]
        assert (ended["by"], ended["reason"], ended["approver"]) == (told.keys["approver"]["id"], "erased", None)


@spec("7.1", "8.2")
def test_a_request_for_trust_of_an_erased_principal_says_no_more_what_for(erased: Erased) -> None:
    told = erased.told
    path = f"/approvals/{told.wish['approval_id']}"
    approval = told.owner.get(path).json()
    assert (approval["kind"], approval["content"], approval["request"]) == ("trust_elevation", "erased", None)
    asker = told.client(told.keys["approver"]["key"])
    assert refusal_of(asker.post(f"{path}/approve", json={"reason": "fine"})) == (409, "QWED-REQ-009")


@spec("7.1")
def test_jobs_and_stored_answers_about_the_subject_are_gone(erased: Erased) -> None:
    told = erased.told
    assert refusal_of(told.owner.get(f"/verify/batch/{told.job['job_id']}")) == (404, "QWED-REQ-007")
    again = told.agent.send(told.keyed, {"Idempotency-Key": said("key")})
    # The stored answer is gone, the used step is not (P2).
    assert refusal_of(again) == (200, "QWED-AGENT-LOOP-002")
    assert CANARY not in again.text.lower()


@spec("7.1")
def test_notices_that_wait_for_a_webhook_name_no_erased_principal(erased: Erased) -> None:
    waiting = [json.loads(row[0])["principal_id"] for row in erased.told.row("SELECT body FROM outbox")]
    assert erased.waiting > 0
    assert PRINCIPAL not in waiting
    shown = erased.told.owner.get("/webhook").json()
    assert shown["waiting"] == len(waiting)


@spec("7.1", "4.2")
def test_what_was_proven_before_still_verifies(erased: Erased) -> None:
    told = erased.told
    for answer in (told.approved, told.corrected, *told.repeated):
        leaf = require_receipt(answer["attestation"], erased.keys, answer["action_id"])
        assert len(leaf["commitment"]) == 64
        proof = told.owner.get("/audit/proof/inclusion", params={"activity_id": answer["action_id"]}).json()
        assert proof["index"] == answer["attestation"]["index"]
    checked = told.stranger.post("/attestation/verify", json={"jwt": told.attested["attestation"]}).json()
    assert (checked["valid"], checked["error"]) == (True, None)


@spec("7.1", "4.2")
def test_an_erased_attestation_is_not_issued_again(erased: Erased) -> None:
    told = erased.told
    attestation_id = told.activity(told.attested)["attestation_id"]
    shown = told.owner.get(f"/attestation/{attestation_id}").json()
    assert (shown["erased"], shown["attestation"], shown["activity_id"]) == (True, None, told.attested["action_id"])


@spec("7.1")
def test_the_log_verifies_and_says_that_somebody_was_erased(erased: Erased) -> None:
    told = erased.told
    leaves = [each["leaf"] for each in told.owner.get("/audit/entries?from_index=0&limit=1000").json()["entries"]]
    head = require_head(told.owner.get("/audit/head").json(), erased.keys)
    assert (root_of(leaves).hex(), len(leaves)) == (head["root"], head["size"])
    events = [leaf for leaf in map(json.loads, leaves) if leaf.get("event") == "erased"]
    assert [leaf["activity_id"] for leaf in events][:2] == [each["activity_id"] for each in erased.erasures]
    changes = [each for each in told.owner.get("/changes?limit=1000").json()["changes"] if each["event"] == "erased"]
    assert {each["activity_id"] for each in changes} >= {each["activity_id"] for each in erased.erasures}
    assert all(each["change"]["about"].startswith("sub_") for each in changes)


@spec("7.1", "6.1")
def test_what_was_spent_and_held_and_counted_stays(erased: Erased) -> None:
    """Check that an erasure releases no charge and reopens no refused request (P3)."""
    budget = erased.told.agent.budget()
    assert budget["cost"]["current_daily_usd"] >= erased.budget["cost"]["current_daily_usd"] > 0
    assert erased.budget["cost"]["held_usd"] > 0
    summary = erased.told.agent.activity()["summary"]
    for name, count in erased.summary.items():
        assert summary[name] >= count


@spec("7.1")
def test_others_keep_what_was_said_about_them(erased: Erased) -> None:
    told = erased.told
    for ask, answer in ((told.other, told.untouched), (told.foreign, told.namesake)):
        shown = action_of(ask, answer["action_id"])
        assert (shown["content"], shown["user_intent"], shown["action"]) == ("kept", "to be kept", SUM)


@spec("7.1", "9.2", "9.3")
def test_a_used_step_stays_used_and_a_loop_goes_on_being_one(erased: Erased) -> None:
    told = erased.told
    replayed = told.agent(another(1), 2, conversation="again", subject=ADA)
    assert replayed["error"]["code"] == "QWED-AGENT-LOOP-002"
    third = told.agent(REPEATED, 3, conversation="again", subject=ADA)
    assert third["error"]["code"] == "QWED-AGENT-LOOP-003"


@spec("7.1")
def test_whoever_was_erased_may_be_spoken_of_again_and_erased_again(erased: Erased) -> None:
    told = erased.told
    action = told.keyed["action"]
    answer = told.agent(action, 1, conversation="afresh", subject=ADA, user_intent=said("once more"))
    assert (answer["decision"], answer["verified_query"]) == ("APPROVED", QUERY)
    entry = told.activity(answer)
    assert (entry["content"], entry["action"], entry["user_intent"]) == ("kept", action, said("once more"))
    assert told.activity(told.approved)["content"] == "erased"
    assert told.erase(ADA)["erased"] is True
    assert told.erase(ADA) == {"erased": False, "activity_id": None}
    assert told.activity(answer)["content"] == "erased"
    require_receipt(answer["attestation"], erased.keys, answer["action_id"])


@spec("7.1")
def test_an_erased_request_cannot_be_approved_and_can_be_rejected(erased: Erased) -> None:
    told = erased.told
    person = told.client(told.keys["approver"]["key"])
    held = told.agent.budget()["cost"]["held_usd"]
    refused = settle(person, told.pending["approval_id"])
    assert refusal_of(refused) == (409, "QWED-REQ-009")
    assert "erased" in refused.json()["error"]["message"]
    rejected = settle(person, told.pending["approval_id"], "reject", reason=said("no longer")).json()
    assert (rejected["state"], rejected["resolution"]["reason"]) == ("rejected", said("no longer"))
    assert told.agent.budget()["cost"]["held_usd"] < held
    # New content about the subject is content of the subject again.
    assert told.erase(ADA)["erased"] is True
    again = told.owner.get(f"/approvals/{told.pending['approval_id']}").json()
    assert again["resolution"]["reason"] == "erased"


@spec("7.1")
def test_an_execution_that_is_told_after_the_erasure_is_logged(erased: Erased) -> None:
    told = erased.told
    path = f"/agents/{told.agent.agent_id}/actions/{told.corrected['action_id']}/execution"
    report = {"success": False, "result": RESULT, "attestation": told.corrected["attestation"]}
    execution = _ok(told.owner.post(path, json=report))["execution"]
    assert execution["success"] is False


@spec("7.1")
@pytest.mark.parametrize("caller", ["approver", "member", "agent", "nobody"])
def test_only_an_owner_erases(erased: Erased, caller: str) -> None:
    told = erased.told
    headers = {"Authorization": f"Bearer {told.agent.agent['agent_token']}"} if caller == "agent" else {}
    if caller in told.keys:
        headers = {"X-API-Key": told.keys[caller]["key"]}
    refused = told.stranger.post("/audit/erase", json={"subject": "grace@example.com"}, headers=headers)
    expected = (401, "QWED-AUTH-001") if caller == "nobody" else (403, "QWED-AUTH-003")
    assert refusal_of(refused) == expected
    assert action_of(told.other, told.untouched["action_id"])["content"] == "kept"


@spec("7.1")
@pytest.mark.parametrize(
    ("body", "code"),
    [
        ({}, "QWED-REQ-004"),
        ({"subject": None}, "QWED-REQ-004"),
        ({"subject": ""}, "QWED-REQ-001"),
        ({"subject": 7}, "QWED-REQ-001"),
        ({"subject": "a" * 257}, "QWED-REQ-001"),
        ({"subject": "ada", "everybody": True}, "QWED-REQ-001"),
        ([], "QWED-REQ-001"),
    ],
)
def test_who_is_to_be_erased_must_be_said(erased: Erased, body: Any, code: str) -> None:
    assert refusal_of(erased.told.owner.post("/audit/erase", json=body)) == (400, code)


@spec("7.1")
@pytest.mark.parametrize("subject", ["nobody", " ", "a" * 256, "a\u00a0b\n", "\U0001f98a", "user_ada "])
def test_of_whom_nothing_is_kept_nothing_is_erased(erased: Erased, subject: str) -> None:
    size = erased.told.owner.get("/audit/head").json()["size"]
    assert erased.told.erase(subject) == {"erased": False, "activity_id": None}
    assert erased.told.owner.get("/audit/head").json()["size"] == size


@spec("7.1", "3.1")
@pytest.mark.parametrize("principal", ["a\u00a0b", "two\nlines", "p" * 256, "new \U0001fae8 \u0378"])
def test_whoever_can_be_a_principal_can_be_erased(erased: Erased, principal: str) -> None:
    told = erased.told
    ask = told.create_agent(principal)
    answer = ask(SUM, 1, user_intent="to be forgotten")
    assert action_of(ask, answer["action_id"])["content"] == "kept"
    assert told.erase(principal)["erased"] is True
    assert action_of(ask, answer["action_id"])["content"] == "erased"


@spec("7.1", "9.1")
@pytest.mark.parametrize("subject", ["", " ", "a" * 257, "a\nb", "a\u0000b", "\u200e", 7, ["ada"]])
def test_a_subject_is_a_printable_name(erased: Erased, subject: Any) -> None:
    answer = erased.told.other.send(
        {"action": SUM, "context": {"conversation_id": "odd", "step_number": 1, "subject": subject}}
    )
    assert refusal_of(answer) == (400, "QWED-REQ-001")
    assert "context.subject" in answer.json()["error"]["message"]


@spec("7.1")
@pytest.mark.parametrize("subject", ["", " ", "a" * 257, "a\nb", 7])
def test_the_subject_of_a_batch_is_a_printable_name(erased: Erased, subject: Any) -> None:
    body = {"items": [{"query": "1 = 1"}], "options": {"subject": subject}}
    assert refusal_of(erased.told.owner.post("/verify/batch", json=body)) == (400, "QWED-REQ-005")


@spec("7.1")
def test_no_decision_fails_while_its_subject_is_erased_over_and_over(erased: Erased) -> None:
    told = erased.told
    agents = [told.create_agent(STAYS).agent_id for _ in range(10)]
    owner = {"X-API-Key": told.server.owner_key}
    AgentConversation(told.owner, {"agent_id": agents[0]})(SUM, 1, subject="in flight", user_intent="known before")
    asked = []
    for number in range(120):
        place = {"conversation_id": f"{number}", "step_number": 1, "subject": "in flight", "user_intent": f"{number}"}
        body = {"action": {"type": "calculate", "query": f"{number} + 1"}, "context": place}
        asked.append(message(f"/agents/{agents[number % 10]}/verify", body, owner))
        if number % 12 == 11:
            asked.append(message("/audit/erase", {"subject": "in flight"}, owner))
    heard = send_concurrently(told.server.base_url, asked, 13)
    assert [one.status for one in heard if one is not None] == [200] * len(asked)
    states = {"kept": 0, "erased": 0}
    for agent_id in agents:
        for entry in told.owner.get(f"/agents/{agent_id}/activity?limit=1000").json()["activities"]:
            states[entry["content"]] += 1
            assert (entry["user_intent"] is not None) is (entry["content"] == "kept")
    assert sum(states.values()) == 121
    assert states["erased"] > 0
    told.erase("in flight")
    for agent_id in agents:
        page = told.owner.get(f"/agents/{agent_id}/activity?limit=1000").json()["activities"]
        assert {entry["content"] for entry in page} == {"erased"}


@spec("7.1")
def test_somebody_who_reads_the_database_meanwhile_holds_up_no_erasure_and_no_decision(erased: Erased) -> None:
    told = erased.told
    answer = told.other(SUM, 1, conversation="read", subject="linus@example.com")
    (kept,) = told.row("SELECT key FROM subjects WHERE key IS NOT NULL ORDER BY created_at DESC LIMIT 1")
    with StoredRows(told.directory).open_read_transaction():
        assert told.erase("linus@example.com")["erased"] is True
        assert told.other(SUM, 2, conversation="read")["decision"] == "APPROVED"
        assert action_of(told.other, answer["action_id"])["content"] == "erased"
    # The next run removes what this one could not.
    told.other(SUM, 1, conversation="read later", subject="linus@example.com")
    assert told.erase("linus@example.com")["erased"] is True
    assert kept[0] not in told.files()


# In process, with a manual clock


@pytest.fixture
def manual_clock() -> ManualClock:
    return ManualClock(time.time() - 40 * DAY)


def _opened(place: Path, manual_clock: ManualClock, days: int = 30) -> Gate:
    return open_gate(place, clock=manual_clock.clock(), content_retention_days=days)


def _old(gate: Gate) -> tuple[str, dict[str, Any]]:
    """Agent with one record of every kind that expires."""
    agent = gate.register_agent(name=unique_name("old"), principal_id=PRINCIPAL, trust_level=1).agent_id
    about = {"conversation_id": "old", "user_intent": "long ago", "subject": ADA}
    approved = gate.verify_action(agent, SUM, {**about, "step_number": 1}, idempotency_key="k")
    waiting = gate.verify_action(agent, EMAIL, {**about, "step_number": 2})
    gate.approve(waiting.approval_id, reason="long ago", approver="long ago")
    gate.log_execution(agent, approved.action_id, True, result={"long": "ago"})
    return agent, {"approved": approved, "waiting": waiting}


Opened = Callable[[Path, ManualClock], Gate]


@spec("7.1", "7.2")
def test_content_whose_time_is_over_expires_and_what_was_counted_stays(
    tmp_path: Path, manual_clock: ManualClock
) -> None:
    with _opened(tmp_path / "data", manual_clock) as gate:
        agent, told = _old(gate)
        manual_clock.advance(20 * DAY)
        young = gate.verify_action(agent, SUM, {"conversation_id": "young", "step_number": 1, "user_intent": "of late"})
        before = gate.services.store.activity_summary(agent, None, None)
        manual_clock.advance(11 * DAY)
        assert drop_expired_content(gate.services) > 0
        entries = {entry["activity_id"]: entry for entry in gate.get_agent_activity(agent, limit=100, kind="all")}
        for name in ("approved", "waiting"):
            entry = entries[told[name].action_id]
            assert (entry["content"], entry["action"], entry["user_intent"]) == ("expired", None, None)
        assert entries[told["approved"].action_id]["execution"]["result_hash"] is None
        assert entries[told["waiting"].action_id]["resolution"]["reason"] == "expired"
        kept = entries[young.action_id]
        assert (kept["content"], kept["user_intent"]) == ("kept", "of late")
        assert gate.services.store.activity_summary(agent, None, None) == before
        assert drop_expired_content(gate.services) == 0
    DataDirectoryCheck(tmp_path / "data").require_consistent()


@spec("7.1")
@pytest.mark.parametrize("days", [0, 30])
def test_stored_answers_and_batches_are_gone_when_their_own_time_is_over(
    tmp_path: Path, manual_clock: ManualClock, days: int
) -> None:
    def kept() -> list[int]:
        tables = ("idempotency_keys", "jobs", "job_items")
        return [StoredRows(tmp_path / "data").cell(f"SELECT count(*) FROM {table}") for table in tables]

    with _opened(tmp_path / "data", manual_clock, days) as gate:
        _old(gate)
        gate.verify_batch([{"query": "2+2 = 4"}, {"query": "1+1 = 2"}])
        assert kept() == [1, 1, 2]
        manual_clock.advance(DAY)
        drop_expired_content(gate.services)
        assert kept() == [0, 1, 2]
        manual_clock.advance(6 * DAY)
        drop_expired_content(gate.services)
        assert kept() == [0, 0, 0]


@spec("7.1")
def test_what_was_kept_while_the_clock_was_wrong_holds_up_no_retention(
    tmp_path: Path, manual_clock: ManualClock
) -> None:
    with _opened(tmp_path / "data", manual_clock) as gate:
        agent = gate.register_agent(name=unique_name("odd"), principal_id=PRINCIPAL).agent_id
        for step, turned in enumerate((0, 9_999 * DAY, -9_999 * DAY), 1):
            manual_clock.advance(turned)
            gate.verify_action(agent, SUM, {"conversation_id": f"{step}", "step_number": 1})
        manual_clock.advance(20 * DAY)
        gate.verify_action(agent, SUM, {"conversation_id": "young", "step_number": 1})
        manual_clock.advance(11 * DAY)
        assert drop_expired_content(gate.services) > 0
        states = {entry["conversation_id"] or "dropped": entry["content"] for entry in gate.get_agent_activity(agent)}
        assert states == {"dropped": "expired", "young": "kept"}


@spec("7.1")
def test_without_a_limit_nothing_expires(tmp_path: Path, manual_clock: ManualClock) -> None:
    with _opened(tmp_path / "data", manual_clock, days=0) as gate:
        agent, _told = _old(gate)
        manual_clock.advance(10_000 * DAY)
        assert drop_expired_content(gate.services) == 0
        assert {entry["content"] for entry in gate.get_agent_activity(agent, kind="all")} == {"kept"}


@spec("7.1")
def test_a_request_whose_content_has_expired_cannot_be_approved(tmp_path: Path, manual_clock: ManualClock) -> None:
    with open_gate(
        tmp_path / "data", clock=manual_clock.clock(), content_retention_days=1, approval_ttl_seconds=9 * DAY
    ) as gate:
        agent = gate.register_agent(name=unique_name("slow"), principal_id=PRINCIPAL, trust_level=1).agent_id
        waiting = gate.verify_action(agent, EMAIL, {"conversation_id": "c", "step_number": 1})
        manual_clock.advance(2 * DAY)
        drop_expired_content(gate.services)
        with pytest.raises(GateError) as refused:
            gate.approve(waiting.approval_id, reason="late")
        assert refused.value.code == "QWED-REQ-009"
        assert gate.reject(waiting.approval_id, reason="late").state == "rejected"


@spec("7.1")
def test_a_server_drops_what_is_too_old_when_it_starts(tmp_path: Path, manual_clock: ManualClock) -> None:
    with _opened(tmp_path / "data", manual_clock, days=0) as gate:
        agent, told = _old(gate)
    server = Server(tmp_path / "data", QWED_CONTENT_RETENTION_DAYS="30")
    with httpx.Client(base_url=server.base_url, headers={"X-API-Key": server.owner_key}, timeout=30) as client:
        path = f"/agents/{agent}/actions/{told['approved'].action_id}"
        shown = until(lambda: said if (said := client.get(path).json())["content"] == "expired" else None)
        assert (shown["action"], shown["decision"]) == (None, "APPROVED")
        summary = client.get(f"/agents/{agent}/activity").json()["summary"]
        assert (summary["total_actions"], summary["approved"], summary["pending"]) == (2, 1, 1)
    assert server.stop() == 0


@spec("7.1")
def test_what_a_former_process_could_not_clear_away_is_cleared_at_the_next_start(tmp_path: Path) -> None:
    place = tmp_path / "data"
    server = Server(place)
    with httpx.Client(base_url=server.base_url, headers={"X-API-Key": server.owner_key}, timeout=30) as client:
        ask = AgentConversation(client, _ok(client.post("/agents/register", json=_profile(PRINCIPAL))))
        ask(SUM, 1, subject=ADA)
        key = StoredRows(place).cell("SELECT key FROM subjects ORDER BY created_at DESC LIMIT 1")
        with StoredRows(place).open_read_transaction():
            assert _ok(client.post("/audit/erase", json={"subject": ADA}))["erased"] is True
            server.kill()
    with open_gate(place) as gate:
        until(lambda: gate.services.store.deleted_purged)
        assert key not in StoredRows(place).bytes()


@spec("7.1")
def test_nothing_that_was_judged_is_remembered_past_an_erasure(tmp_path: Path) -> None:
    with open_gate(tmp_path / "data") as gate:
        agent = gate.register_agent(name=unique_name("judged"), principal_id=PRINCIPAL).agent_id
        action = {"type": "execute_sql", "query": QUERY}
        for step in (1, 2):
            assert (
                gate.verify_action(agent, action, {"conversation_id": "c", "step_number": step}).decision == "APPROVED"
            )
        services = gate.services
        assert min(len(services.assessments), len(services.engines)) > 0
        gate.erase(PRINCIPAL)
        assert (len(services.assessments), len(services.engines)) == (0, 0)
        assert gate.verify_action(agent, action, {"conversation_id": "d", "step_number": 1}).decision == "APPROVED"


@spec("7.1", "9.2")
@pytest.mark.parametrize("how", ["missing", "of another node", "none"])
def test_nothing_is_decided_without_the_key_that_everything_is_kept_under(tmp_path: Path, how: str) -> None:
    """Check that the key stays the same: with another one, no used step would be recognised (P2)."""
    place, there = tmp_path / "data", {"conversation_id": "c", "step_number": 1}
    with open_gate(place) as gate:
        agent = gate.register_agent(name=unique_name("kept"), principal_id=PRINCIPAL).agent_id
        assert gate.verify_action(agent, SUM, there).decision == "APPROVED"
    file = place / MASTER_FILE
    kept = file.read_text()
    if how == "missing":
        file.unlink()
    else:
        file.write_text("0" * 64 if how == "of another node" else "no key")
    with pytest.raises(VaultError, match=MASTER_FILE):
        open_gate(place)
    told = {**os.environ, **chosen.environment(place)}
    started = subprocess.run([*SERVE, "--data-dir", str(place)], capture_output=True, text=True, timeout=60, env=told)
    assert (started.returncode, started.stderr.count("\n"), MASTER_FILE in started.stderr) == (2, 1, True)
    assert file.exists() is (how != "missing")
    file.write_text(kept)
    file.chmod(0o600)
    with open_gate(place) as gate:
        assert gate.verify_action(agent, SUM, there).error["code"] == "QWED-AGENT-LOOP-002"
