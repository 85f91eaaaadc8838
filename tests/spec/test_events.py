"""`GET /events`: the log as a stream, across restarts of the server."""

import json
import socket
import sys
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, suppress
from pathlib import Path
from urllib.parse import urlsplit

import httpx
import pytest

from tests.conftest import AgentConversation
from tests.spec.conftest import Keyholders, SpecServer
from tests.spec.requests import EMAIL, SUM, Json, another, refusal_of, settle
from tests.spec.sections import spec
from tests.support import small_buffer_server
from tests.support.agent_names import unique_name
from tests.support.campaign_table import Figure, campaign
from tests.support.metrics_scrape import Scrape
from tests.support.server import SERVE, Server
from tests.support.sse_client import SseClient

Listen = Callable[..., SseClient]
NARROW = (sys.executable, "-m", small_buffer_server.__name__, *SERVE[3:])
MARK = "an unmistakable word"
VIOLATION = {"type": "execute_code", "code": f"import os\nos.system('{MARK}')"}
_ALWAYS = {"type", "index", "at", "agent_id", "activity_id"}
_OF_THE_LEAF = ("activity_id", "event", "about", "by", "action_type", "decision", "status", "engine", "risk_level")
_MORE = ("error", "level_before", "level_after", "success", "self_approved")


@pytest.fixture
def listen(spec_server: SpecServer) -> Iterator[Listen]:
    """`stream = listen(new_keyholders.member)`: open a stream with the key of a client."""
    with ExitStack() as open_ears:

        def call(client: httpx.Client, last: int | None = None, **query: str) -> SseClient:
            return open_ears.enter_context(SseClient(spec_server.base_url, client.headers["X-API-Key"], last, **query))

        yield call


def size_of(client: httpx.Client) -> int:
    size: int = client.get("/audit/head").json()["size"]
    return size


def leaves_of(client: httpx.Client) -> list[Json]:
    entries = client.get("/audit/entries", params={"limit": 1000}).json()["entries"]
    return [json.loads(entry["leaf"]) for entry in entries]


@spec("B")
def test_a_decision_is_one_event_with_the_index_of_its_leaf(new_keyholders: Keyholders, listen: Listen) -> None:
    ask = new_keyholders.create_agent()
    ear = listen(new_keyholders.member)
    assert ear.response.headers["content-type"] == "text/event-stream"
    assert ear.response.headers["cache-control"] == "no-store"
    assert ear.response.headers["x-accel-buffering"] == "no"
    assert "content-length" not in ear.response.headers
    size = size_of(new_keyholders.member)
    assert (ear.retry, ear.last_id) == (1000, str(size - 1))
    answer = ask(SUM, 1)
    (event,) = ear.hear(1)
    assert (event.id, event.type) == (size, "decision")
    said = event.data
    assert said.pop("at").endswith("Z")
    assert said == {
        "type": "decision",
        "index": size,
        "agent_id": ask.agent_id,
        "activity_id": answer["action_id"],
        "by": leaves_of(new_keyholders.member)[-1]["by"],
        "action_type": "calculate",
        "decision": "APPROVED",
        "status": "VERIFIED",
        "engine": "math",
        "risk_level": "low",
    }


def _live(new_keyholders: Keyholders) -> None:
    """Make one event of every kind that has a leaf."""
    ask = new_keyholders.create_agent()
    ask(SUM, 1)
    waiting = [ask(EMAIL | {"parameters": {"subject": f"{MARK} {step}"}}, step) for step in (2, 3)]
    assert {answer["decision"] for answer in waiting} == {"PENDING"}
    settle(new_keyholders.approver, waiting[0]["approval_id"], reason=MARK)
    settle(new_keyholders.approver, waiting[1]["approval_id"], "reject", reason=MARK)
    new_keyholders.member.post(
        f"/agents/{ask.agent_id}/actions/{waiting[0]['action_id']}/execution", json={"success": True, "result": MARK}
    )
    ask(VIOLATION, 4)
    said = {"reason": MARK}
    for verb, who in (
        ("suspend", new_keyholders.member),
        ("reactivate", new_keyholders.approver),
        ("complaint", new_keyholders.member),
    ):
        assert who.post(f"/agents/{ask.agent_id}/{verb}", json=said).status_code == 200
    new_keyholders.member.post("/suspend-all", json=said)
    new_keyholders.create_agent()(EMAIL, 1)
    new_keyholders.approver.post("/reactivate-all", json=said)
    reduced = {"request": "trust_reduction", "to_level": 0, "justification": MARK}
    new_keyholders.approver.post(f"/agents/{new_keyholders.create_agent().agent_id}/trust", json=reduced)
    assert new_keyholders.owner.put("/tools/look_up", json={"risk_level": "low"}).status_code == 200
    new_keyholders.owner.post(f"/agents/{ask.agent_id}/rotate-token")


EXPECTED = {
    "registered": "agent",
    "token_rotated": "agent",
    "approved": "approval",
    "rejected": "approval",
    "executed": "execution",
    "trust_degraded": "trust",
    "trust_lowered": "trust",
    "suspended": "suspension",
    "reactivated": "suspension",
    "complaint": "suspension",
    "halted": "suspension",
    "resumed": "suspension",
    "key_added": "organisation",
    "tool_changed": "organisation",
    None: "decision",
}


@spec("B", "7.1")
def test_the_events_are_the_log_leaf_by_leaf_and_tell_nothing_of_the_content(
    new_keyholders: Keyholders, listen: Listen
) -> None:
    live, again = listen(new_keyholders.approver), None
    _live(new_keyholders)
    leaves = leaves_of(new_keyholders.member)
    again = listen(new_keyholders.member, last=-1)
    heard = again.until(len(leaves) - 1)
    assert [event.id for event in heard] == list(range(len(leaves)))
    begun = int(heard[0].id) + len(leaves) - len(live.until(len(leaves) - 1))
    assert live.text.split("\n\n", 1)[1] == again.text.split("\n\n", 1 + begun)[-1]
    for event, leaf in zip(heard, leaves, strict=True):
        assert (event.type, event.data["type"]) == (EXPECTED[leaf.get("event")],) * 2
        assert set(event.data) >= _ALWAYS
        assert event.data["agent_id"] == leaf.get("agent_id")
        for name in (*_OF_THE_LEAF, *_MORE):
            assert event.data.get(name) == leaf.get(name), name
        assert set(event.data) <= {*_ALWAYS, *_OF_THE_LEAF, *_MORE}
    assert {leaf.get("event") for leaf in leaves} == set(EXPECTED)
    assert MARK not in again.text


@spec("B")
def test_a_stream_begins_now_or_after_the_event_that_was_heard_last(new_keyholders: Keyholders, listen: Listen) -> None:
    ask = new_keyholders.create_agent()
    ask(another(1), 1)
    size = size_of(new_keyholders.member)
    now, after, first = (
        listen(new_keyholders.member),
        listen(new_keyholders.member, size - 2),
        listen(new_keyholders.member, -1),
    )
    ask(another(2), 2)
    assert [event.id for event in now.hear(1)] == [size]
    assert [event.id for event in after.hear(2)] == [size - 1, size]
    assert [event.id for event in first.until(size)] == list(range(size + 1))


@spec("B")
def test_only_what_is_asked_for_is_told_and_approval_means_the_asking_too(
    new_keyholders: Keyholders, listen: Listen
) -> None:
    ask = new_keyholders.create_agent()
    ears = {name: listen(new_keyholders.member, type=name) for name in ("decision", "approval", "suspension,trust")}
    answers = [ask(SUM, 1), ask(EMAIL, 2)]
    settle(new_keyholders.approver, answers[1]["approval_id"])
    new_keyholders.member.post(f"/agents/{ask.agent_id}/suspend", json={"reason": "enough"})
    asked = [answer["action_id"] for answer in answers]
    told = {name: ear.hear(2 if name != "suspension,trust" else 1) for name, ear in ears.items()}
    assert [event.data["activity_id"] for event in told["decision"]] == asked
    assert [(event.type, event.data.get("event")) for event in told["approval"]] == [
        ("decision", None),
        ("approval", "approved"),
    ]
    assert [event.data["about"] for event in told["approval"][1:]] == asked[1:]
    assert [event.data["event"] for event in told["suspension,trust"]] == ["suspended"]


REFUSED: list[tuple[Json, Json, str]] = [
    ({"Last-Event-ID": "one"}, {}, "`Last-Event-ID` must be the id of an event"),
    ({"Last-Event-ID": ""}, {}, "`Last-Event-ID` must be the id of an event"),
    ({"Last-Event-ID": "-2"}, {}, "`Last-Event-ID` must be the id of an event"),
    ({"Last-Event-ID": "1.5"}, {}, "`Last-Event-ID` must be the id of an event"),
    ({"Last-Event-ID": "0x1"}, {}, "`Last-Event-ID` must be the id of an event"),
    ({"Last-Event-ID": "9" * 19}, {}, "`Last-Event-ID` must be the id of an event"),
    ({"Last-Event-ID": "999999"}, {}, "`Last-Event-ID` is 999999, and the log ends at "),
    ({}, {"type": "rumour"}, "unknown type `rumour`: use decision, approval, "),
    ({}, {"type": ""}, "unknown type ``: use "),
    ({}, {"type": "decision,"}, "unknown type ``: use "),
    ({}, {"type": "decision, approval"}, "unknown type ` approval`: use "),
    ({}, {"type": "DECISION"}, "unknown type `DECISION`: use "),
    ({}, {"from_index": "1"}, "unknown parameter `from_index`: use one of type"),
    ({}, {"key": "qwed_live_x"}, "unknown parameter `key`: use one of type"),
]


@spec("B")
@pytest.mark.parametrize(("headers", "query", "message"), REFUSED)
def test_what_cannot_be_told_is_refused_by_name(
    keyholders: Keyholders, headers: Json, query: Json, message: str
) -> None:
    refused = keyholders.member.get("/events", headers=headers, params=query)
    assert refusal_of(refused) == (400, "QWED-REQ-005")
    assert message in refused.json()["error"]["message"]


@spec("B")
def test_the_last_id_right_behind_the_log_is_beyond_it(new_keyholders: Keyholders) -> None:
    size = size_of(new_keyholders.member)
    refused = new_keyholders.member.get("/events", headers={"Last-Event-ID": str(size)})
    message = f"`Last-Event-ID` is {size}, and the log ends at {size - 1}: omit it to start now"
    assert (refusal_of(refused), refused.json()["error"]["message"]) == ((400, "QWED-REQ-005"), message)


@spec("B")
def test_a_place_in_the_log_that_stands_twice_is_refused(spec_server: SpecServer, keyholders: Keyholders) -> None:
    headers = [("X-API-Key", spec_server.keys["member"]), ("Last-Event-ID", "0"), ("Last-Event-ID", "1")]
    assert refusal_of(httpx.get(f"{spec_server.base_url}/events", headers=headers)) == (400, "QWED-REQ-001")


@spec("B")
def test_the_head_of_a_stream_can_be_asked_for_alone(new_keyholders: Keyholders) -> None:
    answer = new_keyholders.member.head("/events")
    assert (answer.status_code, answer.headers["content-type"], answer.content) == (200, "text/event-stream", b"")


@spec("9.8")
def test_two_organisations_never_hear_each_other(
    spec_server: SpecServer, new_keyholders: Keyholders, listen: Listen
) -> None:
    with spec_server.client("foreign") as foreign:
        ours, theirs = listen(new_keyholders.member), listen(foreign)
        asks = [new_keyholders.create_agent(), AgentConversation(foreign, _hired(foreign))]
        for step in range(1, 6):
            for ask in asks:
                ask(another(step), step, conversation="turns")
        heard = [[event.data["agent_id"] for event in ear.hear(6)] for ear in (ours, theirs)]
    assert heard == [[ask.agent_id] * 6 for ask in asks]
    assert asks[1].agent_id not in ours.text
    assert asks[0].agent_id not in theirs.text


def _hired(client: httpx.Client) -> Json:
    agent: Json = client.post("/agents/register", json={"name": unique_name("hired"), "principal_id": "p"}).json()
    return agent


@spec("9.8")
def test_a_key_that_is_revoked_ends_its_streams_and_no_other(new_keyholders: Keyholders, listen: Listen) -> None:
    made = new_keyholders.owner.post("/keys", json={"name": "passing", "role": "member"}).json()
    with httpx.Client(base_url=new_keyholders.owner.base_url, headers={"X-API-Key": made["key"]}) as passing:
        ending, staying = listen(passing), listen(new_keyholders.member)
        new_keyholders.create_agent()(SUM, 1)
        assert len(ending.hear(2)) == 2
        assert new_keyholders.owner.delete(f"/keys/{made['id']}").status_code == 200
        assert list(ending) == []
        assert refusal_of(passing.get("/events")) == (401, "QWED-AUTH-002")
    assert [event.data.get("event") for event in staying.hear(3)] == ["registered", None, "key_revoked"]


@spec("B")
def test_the_kill_switch_stops_agents_and_not_those_who_watch_them(new_keyholders: Keyholders, listen: Listen) -> None:
    ask = new_keyholders.create_agent()
    ear = listen(new_keyholders.member)
    new_keyholders.member.post("/suspend-all", json={"reason": "all hands"})
    ask(SUM, 1)
    new_keyholders.approver.post("/reactivate-all", json={"reason": "all well"})
    assert [(event.type, event.data.get("error")) for event in ear.hear(3)] == [
        ("suspension", None),
        ("decision", "QWED-AGENT-003"),
        ("suspension", None),
    ]
    new_keyholders.member.post("/suspend-all", json={"reason": "again"})
    with listen(new_keyholders.member) as late:
        new_keyholders.create_agent()
        assert [event.data["event"] for event in late.hear(1)] == ["registered"]


@spec("B")
def test_an_organisation_has_sixty_four_streams_and_another_still_has_its_own(
    spec_server: SpecServer, new_keyholders: Keyholders, listen: Listen
) -> None:
    with ThreadPoolExecutor(16) as threads:
        ears = list(threads.map(lambda _: listen(new_keyholders.member), range(64)))
    assert {ear.response.status_code for ear in ears} == {200}
    refused = new_keyholders.member.get("/events")
    assert refusal_of(refused) == (429, "QWED-SYS-001")
    assert refused.headers["retry-after"] == "1"
    assert "64 event streams of this organisation are open" in refused.json()["error"]["message"]
    with spec_server.client("foreign") as foreign:
        assert listen(foreign).response.status_code == 200
    scrape = Scrape(spec_server.base_url, spec_server.keys["owner"])
    open_now = scrape.value("qwed_event_streams_open")
    ears[7].close()
    scrape.wait_until("qwed_event_streams_open", open_now - 1)
    assert listen(new_keyholders.member).response.status_code == 200


@spec("B")
def test_fifty_listeners_hear_the_same(new_keyholders: Keyholders, listen: Listen) -> None:
    with ThreadPoolExecutor(50) as threads:
        ears = list(threads.map(lambda _: listen(new_keyholders.member), range(50)))
        size = size_of(new_keyholders.member)
        asks = [new_keyholders.create_agent() for _ in range(4)]
        for step in range(1, 6):
            list(threads.map(lambda ask: ask(another(step), step), asks))  # noqa: B023 - used before the next turn
        told = list(threads.map(lambda ear: ear.until(size + 23), ears))
    assert [event.id for event in told[0]] == list(range(size, size + 24))
    assert all(each == told[0] for each in told)


# Tests with a server of their own


@pytest.fixture
def place(tmp_path: Path) -> Path:
    return tmp_path / "data"


class Alone:
    """A server, its owner, and an agent that keeps acting."""

    def __init__(self, place: Path, command: Sequence[str] = SERVE) -> None:
        self.server = Server(place, command)
        self.key = self.server.owner_key
        self.client = httpx.Client(base_url=self.server.base_url, headers={"X-API-Key": self.key}, timeout=30)
        self.scrape = Scrape(self.server.base_url, self.key)

    def act(self, count: int) -> int:
        """Request some decisions while the server lives; return how many were answered."""
        answered = 0
        with suppress(httpx.TransportError):
            ask = AgentConversation(self.client, _hired(self.client))
            for number in range(count):
                answered += ask(SUM, 1, conversation=f"c{number}")["decision"] == "APPROVED"
        return answered

    def stalled(self) -> socket.socket:
        """Client that requests the whole log and reads nothing."""
        at = urlsplit(self.server.base_url)
        line = socket.socket()
        line.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1024)
        line.connect((at.hostname, at.port))
        head = f"GET /events HTTP/1.1\r\nhost: x\r\nx-api-key: {self.key}\r\nlast-event-id: -1\r\n\r\n"
        line.sendall(head.encode())
        return line


def _listen_across(place: Path, kills: int) -> None:
    """Follow the log through this many kills, each time from the last event received."""
    heard: list[int] = []
    last = -1
    for _ in range(kills):
        alone = Alone(place)
        with SseClient(alone.server.base_url, alone.key, last) as ear, ThreadPoolExecutor(1) as threads:
            acting = threads.submit(alone.act, 1000)
            heard += [event.id for event in ear.hear(20)]
            alone.server.kill()
            with suppress(httpx.TransportError):
                heard.extend(event.id for event in ear)
            last = int(ear.last_id)
            assert 0 < acting.result() < 1000
        alone.client.close()
    alone = Alone(place)
    size = size_of(alone.client)
    with SseClient(alone.server.base_url, alone.key, last) as ear:
        alone.act(1)
        heard += [event.id for event in ear.until(size + 1)]
    alone.client.close()
    alone.server.kill()
    assert heard == list(range(size + 2))


@spec("B")
def test_who_listens_across_a_kill_and_a_restart_misses_nothing_and_hears_nothing_twice(place: Path) -> None:
    _listen_across(place, kills=1)


@spec("B")
@pytest.mark.drill
@campaign("P5", "kills under whoever listens")
def test_who_listens_across_many_kills_misses_nothing_and_hears_nothing_twice(place: Path, figure: Figure) -> None:
    _listen_across(place, kills=20)
    figure("kills", 20)


@spec("B")
def test_one_who_listens_and_does_not_read_hinders_nobody_and_is_no_reason_to_stay(place: Path) -> None:
    alone = Alone(place, NARROW)
    # More than a socket and a buffer hold.
    assert alone.act(400) == 400
    lines = [alone.stalled() for _ in range(8)]
    alone.scrape.wait_until("qwed_event_streams_open", 8)
    agent_id = _hired(alone.client)["agent_id"]
    body = {"action": EMAIL, "context": {"conversation_id": "waits", "step_number": 1}}
    waiting = alone.client.post(f"/agents/{agent_id}/verify", json=body).json()
    size = size_of(alone.client)
    with SseClient(alone.server.base_url, alone.key) as ear, ThreadPoolExecutor(1) as threads:
        assert alone.act(40) == 40
        assert [event.id for event in ear.until(size + 40)] == list(range(size, size + 41))
        asked = f"/agents/{agent_id}/actions/{waiting['action_id']}"
        polling = threads.submit(alone.client.get, asked, params={"wait": 30})
        alone.scrape.wait_until("qwed_long_polls_open", 1)
        assert alone.scrape.value("qwed_event_streams_open") == 9
        alone.server.process.terminate()
        # The stream ends cleanly: one that broke off would raise.
        assert list(ear) == []
        assert polling.result().json()["decision"] == "PENDING"
    assert alone.server.wait() == 0
    for line in lines:
        line.close()
    alone.client.close()
    assert "graceful shutdown exceeded" not in alone.server.log.read_text()
