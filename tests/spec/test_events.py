"""INTERFACES 1, `GET /events`: the log as it grows, to whoever listens, across any end of the server."""

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

from tests.conftest import Asking
from tests.spec.asking import EMAIL, SUM, Json, another, refusal_of, settle
from tests.spec.conftest import House, People
from tests.spec.sections import spec
from tests.support import narrow_server
from tests.support.ears import Ear
from tests.support.figures import Figure, campaign
from tests.support.scrape import Scrape
from tests.support.server import SERVE, Server

Listen = Callable[..., Ear]
NARROW = (sys.executable, "-m", narrow_server.__name__, *SERVE[3:])
MARK = "an unmistakable word"
VIOLATION = {"type": "execute_code", "code": f"import os\nos.system('{MARK}')"}
_ALWAYS = {"type", "index", "at", "agent_id", "activity_id"}
_OF_THE_LEAF = ("activity_id", "event", "about", "by", "action_type", "decision", "status", "engine", "risk_level")
_MORE = ("error", "level_before", "level_after", "success", "self_approved")


@pytest.fixture
def listen(house: House) -> Iterator[Listen]:
    """`ear = listen(family.member)`: opens a stream with the key of a client."""
    with ExitStack() as open_ears:

        def call(client: httpx.Client, last: int | None = None, **query: str) -> Ear:
            return open_ears.enter_context(Ear(house.base_url, client.headers["X-API-Key"], last, **query))

        yield call


def size_of(client: httpx.Client) -> int:
    size: int = client.get("/audit/head").json()["size"]
    return size


def leaves_of(client: httpx.Client) -> list[Json]:
    entries = client.get("/audit/entries", params={"limit": 1000}).json()["entries"]
    return [json.loads(entry["leaf"]) for entry in entries]


@spec("B")
def test_a_decision_is_one_event_with_the_index_of_its_leaf(family: People, listen: Listen) -> None:
    ask = family.hire()
    ear = listen(family.member)
    assert ear.response.headers["content-type"] == "text/event-stream"
    assert ear.response.headers["cache-control"] == "no-store"
    assert ear.response.headers["x-accel-buffering"] == "no"
    assert "content-length" not in ear.response.headers
    size = size_of(family.member)
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
        "by": leaves_of(family.member)[-1]["by"],
        "action_type": "calculate",
        "decision": "APPROVED",
        "status": "VERIFIED",
        "engine": "math",
        "risk_level": "low",
    }


def _live(family: People) -> None:
    """Something of everything that leaves a leaf."""
    ask = family.hire()
    ask(SUM, 1)
    waiting = [ask(EMAIL | {"parameters": {"subject": f"{MARK} {step}"}}, step) for step in (2, 3)]
    assert {answer["decision"] for answer in waiting} == {"PENDING"}
    settle(family.approver, waiting[0]["approval_id"], reason=MARK)
    settle(family.approver, waiting[1]["approval_id"], "reject", reason=MARK)
    family.member.post(
        f"/agents/{ask.agent_id}/actions/{waiting[0]['action_id']}/execution", json={"success": True, "result": MARK}
    )
    ask(VIOLATION, 4)
    said = {"reason": MARK}
    for verb, who in (("suspend", family.member), ("reactivate", family.approver), ("complaint", family.member)):
        assert who.post(f"/agents/{ask.agent_id}/{verb}", json=said).status_code == 200
    family.member.post("/suspend-all", json=said)
    family.hire()(EMAIL, 1)
    family.approver.post("/reactivate-all", json=said)
    reduced = {"request": "trust_reduction", "to_level": 0, "justification": MARK}
    family.approver.post(f"/agents/{family.hire().agent_id}/trust", json=reduced)
    assert family.owner.put("/tools/look_up", json={"risk_level": "low"}).status_code == 200
    family.owner.post(f"/agents/{ask.agent_id}/rotate-token")


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
def test_the_events_are_the_log_leaf_by_leaf_and_tell_nothing_of_the_content(family: People, listen: Listen) -> None:
    live, again = listen(family.approver), None
    _live(family)
    leaves = leaves_of(family.member)
    again = listen(family.member, last=-1)
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
def test_a_stream_begins_now_or_after_the_event_that_was_heard_last(family: People, listen: Listen) -> None:
    ask = family.hire()
    ask(another(1), 1)
    size = size_of(family.member)
    now, after, first = listen(family.member), listen(family.member, size - 2), listen(family.member, -1)
    ask(another(2), 2)
    assert [event.id for event in now.hear(1)] == [size]
    assert [event.id for event in after.hear(2)] == [size - 1, size]
    assert [event.id for event in first.until(size)] == list(range(size + 1))


@spec("B")
def test_only_what_is_asked_for_is_told_and_approval_means_the_asking_too(family: People, listen: Listen) -> None:
    ask = family.hire()
    ears = {name: listen(family.member, type=name) for name in ("decision", "approval", "suspension,trust")}
    answers = [ask(SUM, 1), ask(EMAIL, 2)]
    settle(family.approver, answers[1]["approval_id"])
    family.member.post(f"/agents/{ask.agent_id}/suspend", json={"reason": "enough"})
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
    ({}, {"type": "rumour"}, "unknown type `rumour`: known are decision, approval, "),
    ({}, {"type": ""}, "unknown type ``: known are "),
    ({}, {"type": "decision,"}, "unknown type ``: known are "),
    ({}, {"type": "decision, approval"}, "unknown type ` approval`: known are "),
    ({}, {"type": "DECISION"}, "unknown type `DECISION`: known are "),
    ({}, {"from_index": "1"}, "unknown parameter `from_index`: known are type"),
    ({}, {"key": "qwed_live_x"}, "unknown parameter `key`: known are type"),
]


@spec("B")
@pytest.mark.parametrize(("headers", "query", "message"), REFUSED)
def test_what_cannot_be_told_is_refused_by_name(people: People, headers: Json, query: Json, message: str) -> None:
    refused = people.member.get("/events", headers=headers, params=query)
    assert refusal_of(refused) == (400, "QWED-REQ-005")
    assert message in refused.json()["error"]["message"]


@spec("B")
def test_the_last_id_right_behind_the_log_is_beyond_it(family: People) -> None:
    size = size_of(family.member)
    refused = family.member.get("/events", headers={"Last-Event-ID": str(size)})
    message = f"`Last-Event-ID` is {size}, and the log ends at {size - 1}: leave it out to begin now"
    assert (refusal_of(refused), refused.json()["error"]["message"]) == ((400, "QWED-REQ-005"), message)


@spec("B")
def test_a_place_in_the_log_that_stands_twice_is_refused(house: House, people: People) -> None:
    headers = [("X-API-Key", house.keys["member"]), ("Last-Event-ID", "0"), ("Last-Event-ID", "1")]
    assert refusal_of(httpx.get(f"{house.base_url}/events", headers=headers)) == (400, "QWED-REQ-001")


@spec("B")
def test_the_head_of_a_stream_can_be_asked_for_alone(family: People) -> None:
    answer = family.member.head("/events")
    assert (answer.status_code, answer.headers["content-type"], answer.content) == (200, "text/event-stream", b"")


@spec("9.8")
def test_two_organisations_never_hear_each_other(house: House, family: People, listen: Listen) -> None:
    with house.client("foreign") as foreign:
        ours, theirs = listen(family.member), listen(foreign)
        asks = [family.hire(), Asking(foreign, _hired(foreign))]
        for step in range(1, 6):
            for ask in asks:
                ask(another(step), step, conversation="turns")
        heard = [[event.data["agent_id"] for event in ear.hear(6)] for ear in (ours, theirs)]
    assert heard == [[ask.agent_id] * 6 for ask in asks]
    assert asks[1].agent_id not in ours.text
    assert asks[0].agent_id not in theirs.text


def _hired(client: httpx.Client) -> Json:
    agent: Json = client.post("/agents/register", json={"name": "hired", "principal_id": "p"}).json()
    return agent


@spec("9.8")
def test_a_key_that_is_revoked_ends_its_streams_and_no_other(family: People, listen: Listen) -> None:
    made = family.owner.post("/keys", json={"name": "passing", "role": "member"}).json()
    with httpx.Client(base_url=family.owner.base_url, headers={"X-API-Key": made["key"]}) as passing:
        ending, staying = listen(passing), listen(family.member)
        family.hire()(SUM, 1)
        assert len(ending.hear(2)) == 2
        assert family.owner.delete(f"/keys/{made['id']}").status_code == 200
        assert list(ending) == []
        assert refusal_of(passing.get("/events")) == (401, "QWED-AUTH-002")
    assert [event.data.get("event") for event in staying.hear(3)] == ["registered", None, "key_revoked"]


@spec("B")
def test_the_kill_switch_stops_agents_and_not_those_who_watch_them(family: People, listen: Listen) -> None:
    ask = family.hire()
    ear = listen(family.member)
    family.member.post("/suspend-all", json={"reason": "all hands"})
    ask(SUM, 1)
    family.approver.post("/reactivate-all", json={"reason": "all well"})
    assert [(event.type, event.data.get("error")) for event in ear.hear(3)] == [
        ("suspension", None),
        ("decision", "QWED-AGENT-003"),
        ("suspension", None),
    ]
    family.member.post("/suspend-all", json={"reason": "again"})
    with listen(family.member) as late:
        family.hire()
        assert [event.data["event"] for event in late.hear(1)] == ["registered"]


@spec("B")
def test_an_organisation_has_sixty_four_streams_and_another_still_has_its_own(
    house: House, family: People, listen: Listen
) -> None:
    with ThreadPoolExecutor(16) as threads:
        ears = list(threads.map(lambda _: listen(family.member), range(64)))
    assert {ear.response.status_code for ear in ears} == {200}
    refused = family.member.get("/events")
    assert refusal_of(refused) == (429, "QWED-SYS-001")
    assert refused.headers["retry-after"] == "1"
    assert "64 event streams of this organisation are open" in refused.json()["error"]["message"]
    with house.client("foreign") as foreign:
        assert listen(foreign).response.status_code == 200
    scrape = Scrape(house.base_url, house.keys["owner"])
    open_now = scrape.value("qwed_event_streams")
    ears[7].close()
    scrape.wait_until("qwed_event_streams", open_now - 1)
    assert listen(family.member).response.status_code == 200


@spec("B")
def test_fifty_listeners_hear_the_same(family: People, listen: Listen) -> None:
    with ThreadPoolExecutor(50) as threads:
        ears = list(threads.map(lambda _: listen(family.member), range(50)))
        size = size_of(family.member)
        asks = [family.hire() for _ in range(4)]
        for step in range(1, 6):
            list(threads.map(lambda ask: ask(another(step), step), asks))  # noqa: B023 - used before the next turn
        told = list(threads.map(lambda ear: ear.until(size + 23), ears))
    assert [event.id for event in told[0]] == list(range(size, size + 24))
    assert all(each == told[0] for each in told)


# Servers of their own


@pytest.fixture
def place(tmp_path: Path) -> Path:
    return tmp_path / "data"


class Alone:
    """A server, its owner, and an agent that acts without end."""

    def __init__(self, place: Path, command: Sequence[str] = SERVE) -> None:
        self.server = Server(place, command)
        self.key = self.server.owner_key
        self.client = httpx.Client(base_url=self.server.base_url, headers={"X-API-Key": self.key}, timeout=30)
        self.scrape = Scrape(self.server.base_url, self.key)

    def act(self, count: int) -> int:
        """So many decisions, if the server lives; how many were answered."""
        answered = 0
        with suppress(httpx.TransportError):
            ask = Asking(self.client, _hired(self.client))
            for number in range(count):
                answered += ask(SUM, 1, conversation=f"c{number}")["decision"] == "APPROVED"
        return answered

    def stalled(self) -> socket.socket:
        """A client that asks for the whole log and reads nothing."""
        at = urlsplit(self.server.base_url)
        line = socket.socket()
        line.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1024)
        line.connect((at.hostname, at.port))
        head = f"GET /events HTTP/1.1\r\nhost: x\r\nx-api-key: {self.key}\r\nlast-event-id: -1\r\n\r\n"
        line.sendall(head.encode())
        return line


def _listen_across(place: Path, kills: int) -> None:
    """Follow the log through so many ends in the middle of the work, each time from what was heard last."""
    heard: list[int] = []
    last = -1
    for _ in range(kills):
        alone = Alone(place)
        with Ear(alone.server.base_url, alone.key, last) as ear, ThreadPoolExecutor(1) as threads:
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
    with Ear(alone.server.base_url, alone.key, last) as ear:
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
    alone.scrape.wait_until("qwed_event_streams", 8)
    agent_id = _hired(alone.client)["agent_id"]
    body = {"action": EMAIL, "context": {"conversation_id": "waits", "step_number": 1}}
    waiting = alone.client.post(f"/agents/{agent_id}/verify", json=body).json()
    size = size_of(alone.client)
    with Ear(alone.server.base_url, alone.key) as ear, ThreadPoolExecutor(1) as threads:
        assert alone.act(40) == 40
        assert [event.id for event in ear.until(size + 40)] == list(range(size, size + 41))
        asked = f"/agents/{agent_id}/actions/{waiting['action_id']}"
        polling = threads.submit(alone.client.get, asked, params={"wait": 30})
        alone.scrape.wait_until("qwed_long_polls_open", 1)
        assert alone.scrape.value("qwed_event_streams") == 9
        alone.server.process.terminate()
        # To the end, and not in the middle of something: a stream that broke off would raise.
        assert list(ear) == []
        assert polling.result().json()["decision"] == "PENDING"
    assert alone.server.wait() == 0
    for line in lines:
        line.close()
    alone.client.close()
    assert "graceful shutdown exceeded" not in alone.server.log.read_text()
