"""Ruling 4.10, webhooks end to end: a real server notifies real receivers, across faults and power cuts."""

import itertools
import json
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from qwed.webhooks.dispatcher import MAX_CONCURRENT_PER_ORGANISATION
from qwed.webhooks.signature import verify
from tests.support.agent_names import unique_name
from tests.support.data_directory_check import DataDirectoryCheck
from tests.support.polling import until
from tests.support.server import Server
from tests.support.webhook_receivers import (
    Behaviour,
    ReceivedNotice,
    WebhookReceiver,
    answering,
    redirecting,
    silent,
    unused_port,
)

CANARY = "canary-7d1f"
"""Text in every request; no notice contains it."""
SUM = {"type": "calculate", "query": "2+2"}
EMAIL = {
    "type": "send_email",
    "target": f"{CANARY}@example.com",
    "parameters": {"body": f"write to {CANARY}@example.com"},
}
ATTACK = {"type": "execute_sql", "query": f"SELECT '{CANARY}' FROM users WHERE id = 1 OR 1=1; DROP TABLE users --"}
ALLOWED = {"QWED_WEBHOOK_ALLOW_PRIVATE": "true"}

_numbers = itertools.count(1)


class WebhookOrganisation:
    """One organisation on a server: its owner, an agent, its webhook."""

    def __init__(self, base_url: str, owner_key: str) -> None:
        self.owner_key = owner_key
        self.api = httpx.Client(base_url=base_url, headers={"X-API-Key": owner_key}, timeout=60)
        self.secret = ""

    def register(self, **fields: Any) -> str:
        answer = self.api.post(
            "/agents/register", json={"name": unique_name(CANARY), "principal_id": "user_7", **fields}
        )
        agent_id: str = answer.json()["agent_id"]
        return agent_id

    def listen(self, url: str, *events: str) -> dict[str, Any]:
        body = {"url": url, "events": list(events)} if events else {"url": url}
        answer = self.api.put("/webhook", json=body)
        assert answer.status_code == 200, answer.text
        kept: dict[str, Any] = answer.json()
        self.secret = kept["secret"]
        return kept

    def ask(self, agent_id: str, action: dict[str, Any] = EMAIL) -> dict[str, Any]:
        context = {"conversation_id": f"c{next(_numbers)}", "step_number": 1, "user_intent": CANARY}
        answer = self.api.post(f"/agents/{agent_id}/verify", json={"action": action, "context": context})
        decided: dict[str, Any] = answer.json()
        return decided

    def webhook(self) -> dict[str, Any]:
        shown: dict[str, Any] = self.api.get("/webhook").json()
        return shown

    def wait_until(self, done: Callable[[dict[str, Any]], bool]) -> dict[str, Any]:
        """Return the webhook once it is as expected; delivery results can only be polled."""
        return until(lambda: shown if done(shown := self.webhook()) else None)

    def require_genuine(self, heard: ReceivedNotice) -> dict[str, Any]:
        """Return the notice after checking its signature, and that it contains no request content."""
        assert verify(self.secret, heard.headers["qwed-signature"], heard.body, time.time())
        assert CANARY.encode() not in heard.body
        assert CANARY not in str(heard.headers) + heard.line
        notice: dict[str, Any] = json.loads(heard.body)
        assert (heard.headers["qwed-event"], heard.headers["qwed-notice"]) == (notice["event"], notice["id"])
        return notice


Open = Callable[..., WebhookReceiver]


@pytest.fixture
def receiver() -> Iterator[Open]:
    """Opens receivers, and closes them at the end."""
    opened: list[WebhookReceiver] = []

    def call(behaviour: Behaviour | None = None, port: int = 0) -> WebhookReceiver:
        opened.append(WebhookReceiver(behaviour or answering(200), port=port))
        return opened[-1]

    yield call
    for one in opened:
        one.close()


def _url(receiver: WebhookReceiver) -> str:
    return receiver.url(scheme="http")


class RestartableServer:
    """Server that can be killed and started again."""

    def __init__(self, directory: Path, **settings: str) -> None:
        self.directory = directory
        self.families: list[WebhookOrganisation] = []
        self._settings = ALLOWED | settings
        self.start()
        self.first = self.organisation(self.server.owner_key)

    def start(self) -> None:
        self.server = Server(self.directory, **self._settings)

    def new_organisation(self) -> WebhookOrganisation:
        """Create an organisation."""
        made = self.first.api.post("/organisations", json={"name": f"family {len(self.families)}"})
        return self.organisation(made.json()["owner_key"])

    def organisation(self, owner_key: str) -> WebhookOrganisation:
        self.families.append(WebhookOrganisation(self.server.base_url, owner_key))
        return self.families[-1]

    def again(self, organisation: WebhookOrganisation) -> WebhookOrganisation:
        """Return the same organisation on the server that runs now."""
        found = self.organisation(organisation.owner_key)
        found.secret = organisation.secret
        return found

    def close(self) -> None:
        for organisation in self.families:
            organisation.api.close()
        assert self.server.stop() == 0
        DataDirectoryCheck(self.directory).require_consistent()


@pytest.fixture
def own_server(tmp_path: Path) -> Iterator[RestartableServer]:
    """Server of one test, which may kill it."""
    opened = RestartableServer(tmp_path / "data")
    yield opened
    opened.close()


@pytest.fixture(scope="module")
def shared_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RestartableServer]:
    """Server shared by the tests that do not kill it; each has its own organisations there."""
    settings = {"QWED_TRUST_MIN_DAYS": "0", "QWED_TRUST_MIN_ACTIONS": "0"}
    opened = RestartableServer(tmp_path_factory.mktemp("shared_server") / "data", **settings)
    yield opened
    opened.close()


@pytest.fixture
def organisation(shared_server: RestartableServer) -> Iterator[WebhookOrganisation]:
    """Organisation on the shared server; its webhook is removed at the end."""
    before = len(shared_server.families)
    yield shared_server.new_organisation()
    # A queued notice must not reach the next test, whose receiver may listen on the same port.
    for one in shared_server.families[before:]:
        one.api.delete("/webhook")


def test_each_event_arrives_once_signed_with_ids_and_without_content(
    organisation: WebhookOrganisation, receiver: Open
) -> None:
    told = receiver()
    organisation.listen(_url(told))
    agent_id = organisation.register(type="autonomous")
    waits = organisation.ask(agent_id)
    attack = organisation.ask(agent_id, ATTACK)
    assert (waits["decision"], attack["decision"]) == ("PENDING", "DENIED")
    organisation.api.post(f"/agents/{agent_id}/suspend", json={"reason": CANARY})
    notices = [organisation.require_genuine(told.next()) for _ in range(4)]
    by_event = {notice["event"]: notice for notice in notices}
    assert set(by_event) == {"pending", "failed", "degraded", "suspended"}
    assert len({notice["id"] for notice in notices}) == 4
    for notice in notices:
        assert (notice["agent_id"], notice["principal_id"]) == (agent_id, "user_7")
    assert by_event["pending"]["activity_id"] == waits["action_id"]
    assert by_event["pending"]["approval_id"] == waits["approval_id"]
    assert by_event["failed"]["activity_id"] == attack["action_id"]
    degraded = by_event["degraded"]
    assert (degraded["trust_level"], degraded["reason"]) == (0, "security_policy_violation")
    shown = organisation.wait_until(lambda shown: shown["waiting"] == 0)
    assert (shown["delivered"], shown["given_up"], shown["last_error"]) == (4, 0, None)
    assert told.heard.empty()


def test_a_request_for_trust_is_told_of_and_what_is_approved_is_not(
    organisation: WebhookOrganisation, receiver: Open
) -> None:
    told = receiver()
    organisation.listen(_url(told))
    agent_id = organisation.register()
    assert organisation.ask(agent_id, SUM)["decision"] == "APPROVED"
    asked = organisation.api.post(f"/agents/{agent_id}/trust", json={"to_level": 2, "justification": CANARY}).json()
    notice = organisation.require_genuine(told.next())
    assert (notice["event"], notice["approval_id"]) == ("pending", asked["approval_id"])
    assert organisation.wait_until(lambda shown: shown["waiting"] == 0)["delivered"] == 1


def test_only_what_was_asked_for_arrives(organisation: WebhookOrganisation, receiver: Open) -> None:
    told = receiver()
    organisation.listen(_url(told), "suspended")
    agent_id = organisation.register(type="autonomous")
    assert organisation.ask(agent_id)["decision"] == "PENDING"
    assert organisation.ask(agent_id, ATTACK)["decision"] == "DENIED"
    organisation.api.post(f"/agents/{agent_id}/complaint", json={"reason": CANARY})
    assert organisation.require_genuine(told.next())["event"] == "suspended"
    assert organisation.wait_until(lambda shown: shown["waiting"] == 0)["delivered"] == 1
    assert told.heard.empty()


def test_what_was_refused_is_sent_again_under_the_same_id(organisation: WebhookOrganisation, receiver: Open) -> None:
    told = receiver(answering(503, 200))
    organisation.listen(_url(told))
    organisation.ask(organisation.register())
    first, second = (organisation.require_genuine(told.next()) for _ in range(2))
    assert first == second
    shown = organisation.wait_until(lambda shown: shown["waiting"] == 0)
    assert (shown["delivered"], shown["last_error"]) == (1, None)


def test_a_redirect_is_not_followed(organisation: WebhookOrganisation, receiver: Open) -> None:
    elsewhere = receiver()
    told = receiver(redirecting(307, _url(elsewhere)))
    organisation.listen(_url(told))
    organisation.ask(organisation.register())
    told.next()
    shown = organisation.wait_until(lambda shown: shown["last_error"] is not None)
    assert "redirects are not followed" in shown["last_error"]
    assert (shown["waiting"], shown["delivered"], elsewhere.connections) == (1, 0, 0)


# Power cuts


def test_what_was_undelivered_when_the_server_was_killed_arrives_after_the_next_start(
    own_server: RestartableServer, receiver: Open
) -> None:
    port = unused_port()
    organisation = own_server.first
    organisation.listen(f"http://127.0.0.1:{port}/notices")
    agent_id = organisation.register()
    asked = [organisation.ask(agent_id) for _ in range(5)]
    assert {answer["decision"] for answer in asked} == {"PENDING"}
    own_server.server.kill()
    told = receiver(port=port)
    own_server.start()
    notices = [organisation.require_genuine(told.next()) for _ in range(5)]
    assert {notice["activity_id"] for notice in notices} == {answer["action_id"] for answer in asked}
    again = own_server.again(organisation)
    assert again.wait_until(lambda shown: shown["waiting"] == 0)["delivered"] == 5


def test_what_was_on_its_way_when_the_server_was_killed_is_sent_again_under_the_same_id(
    own_server: RestartableServer, receiver: Open
) -> None:
    organisation, mute = own_server.first, WebhookReceiver(silent)
    organisation.listen(_url(mute))
    asked = organisation.ask(organisation.register())
    first = organisation.require_genuine(mute.next())
    own_server.server.kill()
    port = mute.port
    mute.close()
    told = receiver(port=port)
    own_server.start()
    again = organisation.require_genuine(told.next())
    assert (again, again["activity_id"]) == (first, asked["action_id"])
    assert own_server.again(organisation).wait_until(lambda shown: shown["waiting"] == 0)["delivered"] == 1
    assert told.heard.empty()


def test_what_was_delivered_is_not_sent_again_after_a_restart(own_server: RestartableServer, receiver: Open) -> None:
    organisation, told = own_server.first, receiver()
    organisation.listen(_url(told))
    agent_id = organisation.register()
    organisation.ask(agent_id)
    first = told.next()
    organisation.wait_until(lambda shown: shown["delivered"] == 1)
    own_server.server.kill()
    own_server.start()
    again = own_server.again(organisation)
    later = again.ask(agent_id)
    second = again.require_genuine(told.next())
    assert second["activity_id"] == later["action_id"]
    assert json.loads(first.body)["id"] != second["id"]


# Misbehaving receivers


def test_a_receiver_that_never_answers_changes_nothing_about_decisions(
    organisation: WebhookOrganisation, receiver: Open
) -> None:
    mute = receiver(silent)
    organisation.listen(_url(mute))
    agent_id = organisation.register()
    decisions = [organisation.ask(agent_id, SUM if number % 3 else EMAIL)["decision"] for number in range(120)]
    assert decisions == ["APPROVED" if number % 3 else "PENDING" for number in range(120)]
    mute.next()
    shown = organisation.webhook()
    assert (shown["waiting"], shown["delivered"]) == (40, 0)
    assert 1 <= mute.connections <= MAX_CONCURRENT_PER_ORGANISATION
    approvals = organisation.api.get("/approvals", params={"state": "pending", "limit": 100}).json()["approvals"]
    settled = organisation.api.post(f"/approvals/{approvals[0]['approval_id']}/approve", json={"reason": "fine"})
    # The requesting key is the only one.
    assert settled.json()["state"] == "approved"


def test_a_receiver_that_never_answers_keeps_nobody_else_from_being_told(
    shared_server: RestartableServer, organisation: WebhookOrganisation, receiver: Open
) -> None:
    mute, told, other = receiver(silent), receiver(), shared_server.new_organisation()
    organisation.listen(_url(mute))
    other.listen(_url(told))
    mine, theirs = organisation.register(), other.register()
    for _ in range(20):
        organisation.ask(mine)
    mute.next()
    asked = other.ask(theirs)
    assert other.require_genuine(told.next())["activity_id"] == asked["action_id"]


def test_a_webhook_that_is_removed_is_told_nothing_more(organisation: WebhookOrganisation, receiver: Open) -> None:
    told = receiver()
    organisation.listen(f"http://127.0.0.1:{unused_port()}/")
    agent_id = organisation.register()
    organisation.ask(agent_id)
    organisation.wait_until(lambda shown: shown["last_error"] is not None)
    assert organisation.api.delete("/webhook").json() == {"removed": True}
    assert organisation.api.get("/webhook").status_code == 404
    organisation.ask(agent_id)
    organisation.listen(_url(told))
    assert organisation.webhook()["waiting"] == 0
    later = organisation.ask(agent_id)
    assert organisation.require_genuine(told.next())["activity_id"] == later["action_id"]
    assert told.heard.empty()


def test_what_waits_goes_to_the_new_place_signed_with_the_new_secret(
    organisation: WebhookOrganisation, receiver: Open
) -> None:
    told = receiver()
    organisation.listen(f"http://127.0.0.1:{unused_port()}/")
    asked = organisation.ask(organisation.register())
    organisation.wait_until(lambda shown: shown["last_error"] is not None)
    old = organisation.secret
    organisation.listen(_url(told))
    assert organisation.secret != old
    assert organisation.require_genuine(told.next())["activity_id"] == asked["action_id"]


# Separation of organisations


def test_another_organisations_events_never_arrive(
    shared_server: RestartableServer, organisation: WebhookOrganisation, receiver: Open
) -> None:
    others = [shared_server.new_organisation(), shared_server.new_organisation()]
    mine, theirs = receiver(), receiver()
    organisation.listen(_url(mine))
    others[0].listen(_url(theirs))  # the third has none
    asked: dict[int, set[str]] = {0: set(), 1: set(), 2: set()}
    agents = [one.register() for one in (organisation, *others)]
    for number in range(12):
        which = number % 3
        answer = (organisation, *others)[which].ask(agents[which])
        assert answer["decision"] == "PENDING"
        asked[which].add(answer["action_id"])
    for one, told, which in ((organisation, mine, 0), (others[0], theirs, 1)):
        heard = [one.require_genuine(told.next()) for _ in range(4)]
        assert {notice["activity_id"] for notice in heard} == asked[which]
        assert {notice["agent_id"] for notice in heard} == {agents[which]}
        assert one.wait_until(lambda shown: shown["waiting"] == 0)["delivered"] == 4
        assert told.heard.empty()
    assert others[1].api.get("/webhook").status_code == 404


# Allowed webhook URLs


REFUSED = [
    "https://127.0.0.1/",
    "https://127.0.0.1:8443/hook",
    "https://127.1/",
    "https://0.0.0.0/",
    "https://[::1]/",
    "https://[::ffff:127.0.0.1]/",
    "https://[::ffff:7f00:1]/",
    "https://localhost/",
    "https://LOCALHOST/",
    "https://localhost./",
    "https://a.localhost/",
    "https://169.254.169.254/latest/meta-data/",
    "https://[fe80::1]/",
    "https://10.0.0.1/",
    "https://172.16.0.1/",
    "https://192.168.1.1/",
    "https://[fd00::1]/",
    "https://100.64.0.1/",
    "https://2130706433/",
    "https://0x7f000001/",
    "https://0x7f.0.0.1/",
    "https://0177.0.0.1/",
    "https://017700000001/",
    "https://metadata/",
    "https://printer.local/",
    "https://db.internal/",
    "http://example.com/",
    "ftp://example.com/",
    "file:///etc/passwd",
    "https://user:password@example.com/",
    "https://example.com#@127.0.0.1/",
    "https://example.com\\@127.0.0.1/",
    "https://127.0.0.1%00.example.com/",
    "https://example.com:25/",
    "//example.com/",
    "example.com",
    "",
]


@pytest.mark.parametrize("url", REFUSED)
def test_a_url_that_leads_home_is_refused(api: httpx.Client, url: str) -> None:
    answer = api.put("/webhook", json={"url": url})
    assert answer.status_code == 400, answer.text
    assert answer.json()["error"]["code"] == "QWED-REQ-005"
    assert api.get("/webhook").status_code == 404


def test_a_public_https_url_is_taken_and_its_secret_shown_once(api: httpx.Client) -> None:
    kept = api.put("/webhook", json={"url": "https://hooks.example.com/qwed", "events": ["failed"]}).json()
    assert kept["secret"].startswith("qwed_hook_")
    shown = api.get("/webhook").json()
    assert (shown["url"], shown["events"]) == ("https://hooks.example.com/qwed", ["failed"])
    assert kept["secret"] not in str(shown)
    assert api.delete("/webhook").status_code == 200


def test_with_the_setting_a_private_address_is_told_and_metadata_never_is(organisation: WebhookOrganisation) -> None:
    answer = organisation.api.put("/webhook", json={"url": "http://169.254.169.254/latest/meta-data/"})
    assert answer.status_code == 400
