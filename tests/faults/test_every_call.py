"""P4: a fault in every call. Each call that a decision, or a verb of a person, makes of any part fails once.

Never an approval without a record, never anything held afterwards, and the next request is served. The rows of
`test_injected_changes.py` say which calls of the store each verb makes; here are all calls of all parts, as they come.
"""

import asyncio
import shutil
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import httpx
import pytest

import qwed
from qwed.api.app import App
from qwed.gate import Gate, GateError, door, holder
from qwed.kernel.change import GATE, Actor
from qwed.kernel.people import organisations, webhook
from qwed.kernel.stages.authenticate import find_key
from qwed.kernel.wiring import close_services, open_services
from qwed.settings import Settings
from qwed.store.protocol import StoreError
from qwed.store.usage import NOTHING
from tests.faults.everywhere import IN_WRITER, Hang, Point, Wire, laid
from tests.support.books import COMMITTED, Books
from tests.support.clock import HandClock
from tests.support.figures import Figure, campaign

SUM = {"type": "calculate", "query": "2+2"}
MAIL = {"type": "send_email", "target": "operations", "parameters": {"body": "hello"}, "cost": {"usd": 0.25}}
DELETE = {"type": "file_delete", "target": "notes.txt"}
WORKED = {"type": "calculate", "query": "x+x = 2*x"}
ATTACK = {"type": "execute_sql", "query": "SELECT * FROM users WHERE id = 1 OR 1=1; DROP TABLE users --"}
PLACE = {"conversation_id": "c", "step_number": 1}
LEASE = 31
PATIENCE = 60.0
"""So that somebody who would wait for ever is found out soon."""

FAILURES = {
    "surprise": RuntimeError("surprise"),
    "store": StoreError("could not write"),
    "disk": OSError(28, "no space left on device"),
    "database": sqlite3.OperationalError("disk I/O error"),
    "late": TimeoutError("too late"),
    "memory": MemoryError(),
    "missing": KeyError("missing"),
}


class Room:
    """A gate on real files, every call of which can be made to fail."""

    def __init__(self, directory: Path, wire: Wire) -> None:
        self.directory = directory
        self.wire = wire
        self.hands = HandClock()
        settings = Settings(data_dir=directory, trust_min_days=0, trust_min_actions=0)
        self.opened = open_services(settings, clock=wire.clock(self.hands.clock()))
        self.gate = Gate(self.opened)
        self.services = self.opened.services
        self.store: Any = self.services.store
        self.actor = Actor(GATE, self.opened.organisation_id, "owner")
        wire.around(self.store)
        self.agent_id = ""
        self._number = 0
        self.told: dict[str, str] = {}

    def new_agent(self, type_: str = "supervised") -> None:
        """Everything is about an agent of its own, so that no fault hides behind what another one left behind."""
        self._number += 1
        said = {"name": "a", "principal_id": f"p{self._number}", "type": type_}
        self.agent_id = self.gate.register_agent(**said, budget={"max_daily_cost_usd": 10})["agent_id"]

    def ask(self, action: Any = SUM, conversation: str = "c", **more: Any) -> Any:
        answer = self.gate.verify_action(
            self.agent_id, action, {"conversation_id": conversation, "step_number": 1}, **more
        )
        if answer.decision in COMMITTED:
            self.told[answer.action_id] = answer.decision
        return answer

    def require_served(self) -> None:
        """Once what could not be freed has ended with its lease, nothing is held and the next request is decided."""
        self.hands.turn(LEASE)
        bystander, self.agent_id = self.agent_id, ""
        self.new_agent()
        assert self.ask(conversation="next").decision == "APPROVED"
        self.agent_id = bystander
        assert self.store._live._reservations == {}
        held = [usage.held for usage in self.store._live._usages.values() if usage.held != NOTHING]
        assert held == []

    def require_one_story(self) -> None:
        """What is on disk is one story in which everything told stands."""
        self.gate.close()
        books = Books(self.directory)
        books.require_one_story()
        kept = {one.activity_id: one.decision for one in books.activities}
        assert self.told == {action_id: kept.get(action_id) for action_id in self.told}


class Verb(NamedTuple):
    """Something that is asked of the house: what must be there first, and how it is asked for."""

    prepare: Callable[[Room], Any]
    act: Callable[[Room, Any], Any]


def _nothing(_room: Room) -> None:
    return None


def _pending(room: Room) -> Any:
    answer = room.ask(MAIL)
    assert answer.decision == "PENDING", answer
    return answer.approval_id


def _run_out(room: Room) -> Any:
    approval_id = _pending(room)
    room.hands.turn(86_401)
    return approval_id


def _second_key(room: Room) -> Any:
    return room.gate._act(organisations.add_key("second", "owner", room.actor, room.services)).key.key_id


def _attested(room: Room) -> Any:
    answer = room.ask(options={"require_attestation": True})
    return room.gate.get_action(room.agent_id, answer.action_id).attestation_id


def _answered(room: Room) -> Any:
    assert room.ask(idempotency_key="again").decision == "APPROVED"


DECISIONS: dict[str, Verb] = {
    "approved": Verb(_nothing, lambda room, _: room.ask()),
    "attested": Verb(_nothing, lambda room, _: room.ask(options={"require_attestation": True})),
    "chained": Verb(_nothing, lambda room, _: room.ask(options={"chain_id": "chain"})),
    "with a key": Verb(_nothing, lambda room, _: room.ask(idempotency_key="k")),
    "asked again with its key": Verb(_answered, lambda room, _: room.ask(idempotency_key="again")),
    "pending": Verb(_nothing, lambda room, _: room.ask(MAIL)),
    "of high risk": Verb(lambda room: room.new_agent("trusted"), lambda room, _: room.ask(DELETE)),
    "an attack": Verb(_nothing, lambda room, _: room.ask(ATTACK)),
    "behind what has run out": Verb(_run_out, lambda room, _: room.ask(conversation="later")),
}
CHANGES: dict[str, Verb] = {
    "register": Verb(_nothing, lambda room, _: room.gate.register_agent(name="b", principal_id="p")),
    "approve": Verb(_pending, lambda room, given: room.gate.approve(given, "fine")),
    "reject": Verb(_pending, lambda room, given: room.gate.reject(given, "no")),
    "suspend": Verb(_nothing, lambda room, _: room.gate.suspend_agent(room.agent_id, "stop")),
    "complain": Verb(_nothing, lambda room, _: room.gate.file_complaint(room.agent_id, "stop")),
    "reactivate": Verb(
        lambda room: room.gate.suspend_agent(room.agent_id, "stop"),
        lambda room, _: room.gate.reactivate_agent(room.agent_id, "go on"),
    ),
    "rotate a token": Verb(_nothing, lambda room, _: room.gate.rotate_token(room.agent_id)),
    "ask for trust": Verb(_nothing, lambda room, _: room.gate.request_trust_change(room.agent_id, 2)),
    "raise trust": Verb(
        lambda room: room.gate.request_trust_change(room.agent_id, 2)["approval_id"],
        lambda room, given: room.gate.approve(given, "earned"),
    ),
    "lower trust": Verb(_nothing, lambda room, _: room.gate.reduce_trust(room.agent_id, 0)),
    "log an execution": Verb(
        lambda room: room.ask().action_id,
        lambda room, given: room.gate.log_execution(room.agent_id, given, True, {"rows": 1}),
    ),
    "erase": Verb(
        lambda room: room.ask() and room.gate.get_agent(room.agent_id)["principal_id"],
        lambda room, given: room.gate.erase(given),
    ),
    "add a key": Verb(
        _nothing, lambda room, _: room.gate._act(organisations.add_key("k", "member", room.actor, room.services))
    ),
    "revoke a key": Verb(
        _second_key, lambda room, given: room.gate._act(organisations.revoke_key(given, room.actor, room.services))
    ),
    "add an organisation": Verb(
        _nothing, lambda room, _: room.gate._act(organisations.add_organisation("o", room.actor, room.services))
    ),
    "revoke an attestation": Verb(_attested, lambda room, given: room.gate.revoke_attestation(given, "by mistake")),
    "rotate the signing key": Verb(_nothing, lambda room, _: room.gate.rotate_signing_key("once a year")),
    "set a webhook": Verb(
        _nothing,
        lambda room, _: room.gate._act(
            webhook.set_webhook(webhook.Wish("https://example.com/", ("pending",)), room.actor, room.services)
        ),
    ),
    "look at the budget": Verb(_run_out, lambda room, _: room.gate.get_agent_budget(room.agent_id)),
}
VERBS = DECISIONS | CHANGES
RAISED = (*{type(failure) for failure in FAILURES.values()}, GateError)


def _wait(patch: pytest.MonkeyPatch, seconds: float) -> None:
    """Whoever asks a gate gives up after so many seconds."""
    for module in (door, holder):
        patch.setattr(module, "PATIENCE", seconds)


@contextmanager
def _room(directory: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Room]:
    _wait(monkeypatch, PATIENCE)
    with laid(monkeypatch) as wire:
        room = Room(directory, wire)
        with closing(room.gate):
            yield room


def _points(room: Room, verb: Verb) -> list[Point]:
    """Every call that the verb makes when nothing fails."""
    room.new_agent()
    given = verb.prepare(room)
    with room.wire.live() as wire:
        verb.act(room, given)
    return wire.points()


def _fail_at(room: Room, verb: Verb, point: Point, failure: BaseException) -> bool:
    """Whether the point was reached; whatever came of it, the house stands and serves."""
    room.new_agent()
    given = verb.prepare(room)
    with room.wire.live(point, failure), suppress(*RAISED):
        verb.act(room, given)
    room.require_served()
    _require_may_be_asked_again(room, verb, given)
    return room.wire.reached


def _require_may_be_asked_again(room: Room, verb: Verb, given: Any) -> None:
    """It happened or it did not: a second try says so, and is not lost in what the first one left behind."""
    try:
        answer = verb.act(room, given)
    except GateError:
        return
    decision = getattr(answer, "decision", None)
    if decision == "DENIED":
        assert answer.error["check"] not in ("decision_made", "dependency_up"), answer.error


def _campaign(room: Room, verb: Verb, failures: list[BaseException]) -> int:
    reached = 0
    for point in _points(room, verb):
        for failure in failures:
            reached += _fail_at(room, verb, point, failure)
    return reached


SOON = 0.2
"""How long somebody waits for a disk that hangs."""


def _hang_at(room: Room, verb: Verb, point: Point, monkeypatch: pytest.MonkeyPatch) -> bool:
    """The same, where the writer does not come back before the caller has given up."""
    room.new_agent()
    given = verb.prepare(room)
    hang = Hang()
    with monkeypatch.context() as patched, room.wire.live(point, hang), suppress(*RAISED):
        _wait(patched, SOON)
        verb.act(room, given)
    hang.go.set()
    # Whatever was under way is on disk, or refused, from here on.
    room.store.durable().block(30)
    room.require_served()
    _require_may_be_asked_again(room, verb, given)
    return room.wire.reached


@pytest.mark.parametrize("name", ["approved", "approve"])
def test_a_fault_in_any_call_leaves_nothing_held_and_the_next_request_is_served(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    with _room(tmp_path / "data", monkeypatch) as room:
        assert _campaign(room, VERBS[name], [FAILURES["surprise"]]) > 10
        room.require_one_story()


@pytest.mark.drill
@campaign("P1 P3 P4", "a fault in every call")
@pytest.mark.parametrize("name", VERBS)
@pytest.mark.parametrize("failure", FAILURES)
def test_every_fault_in_every_call_leaves_nothing_held_and_the_next_request_is_served(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, failure: str, figure: Figure
) -> None:
    with _room(tmp_path / "data", monkeypatch) as room:
        reached = _campaign(room, VERBS[name], [FAILURES[failure]])
        room.require_one_story()
    figure("fault points", reached)
    figure("verbs with a kind of failure", 1)


@pytest.mark.drill
@campaign("P1 P3 P4", "a disk that hangs in every call")
@pytest.mark.parametrize("name", VERBS)
def test_a_writer_that_hangs_in_any_call_leaves_nothing_held_and_the_next_request_is_served(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, figure: Figure
) -> None:
    with _room(tmp_path / "data", monkeypatch) as room:
        points = [point for point in _points(room, VERBS[name]) if point.name.endswith(IN_WRITER)]
        figure("fault points", sum(_hang_at(room, VERBS[name], point, monkeypatch) for point in points))
        room.require_one_story()


# Starting, where there is nobody to answer yet


def _start(directory: Path, wire: Wire, point: Point | None = None, failure: BaseException | None = None) -> None:
    """Open the house with the wire live, and close it without."""
    with wire.live(point, failure):
        opened = open_services(Settings(data_dir=directory), clock=wire.clock(HandClock().clock()))
    close_services(opened.services)


def _start_at(directory: Path, wire: Wire, point: Point, failure: BaseException) -> bool:
    """The start fails, or does without; the next one finds a house that its owner can enter, and serves."""
    with suppress(*RAISED):
        _start(directory, wire, point, failure)
    with qwed.open(directory) as gate:
        key = (directory / "owner.key").read_text().strip()
        assert find_key(key, gate.services.store) is not None
        agent_id = gate.register_agent(name="a", principal_id="p")["agent_id"]
        assert gate.verify_action(agent_id, SUM, PLACE).decision == "APPROVED"
    return wire.reached


def _starting(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, failure: BaseException, *, first: bool) -> int:
    with laid(monkeypatch) as wire:
        lived_in = tmp_path / "lived in"
        if not first:
            _start(lived_in, wire)
        _start(tmp_path / "listened to" if first else lived_in, wire)
        reached = 0
        for number, point in enumerate(wire.points()):
            directory = tmp_path / f"{number}"
            if not first:
                shutil.copytree(lived_in, directory)
            reached += _start_at(directory, wire, point, failure)
        return reached


@pytest.mark.drill
@campaign("P1 P4", "a fault in every call of a start")
@pytest.mark.parametrize("first", [True, False], ids=["the first", "a later one"])
@pytest.mark.parametrize("failure", FAILURES)
def test_a_start_that_fails_in_any_call_leaves_a_house_in_which_the_next_one_serves(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, failure: str, first: bool, figure: Figure
) -> None:
    figure("fault points", _starting(tmp_path, monkeypatch, FAILURES[failure], first=first))


# Over HTTP, where strangers, limits and pressure stand before the walk


class Window:
    """Asks the application itself, on a loop of its own."""

    def __init__(self, room: Room) -> None:
        self._loop = asyncio.new_event_loop()
        self._key = (room.directory / "owner.key").read_text().strip()
        # What times bodies on their way in is the machine's own clock; the rest of the house keeps the one that fails.
        clock = replace(room.services.clock, monotonic=room.hands.clock().monotonic)
        transport = httpx.ASGITransport(App(replace(room.services, clock=clock)), raise_app_exceptions=False)
        self._client = httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1")
        room.wire.around(room.store)

    def post(self, path: str, body: Any) -> httpx.Response:
        """The answer to the owner."""
        return self._loop.run_until_complete(self._client.post(path, json=body, headers={"X-API-Key": self._key}))

    def close(self) -> None:
        """Leave nothing open."""
        self._loop.run_until_complete(self._client.aclose())
        self._loop.close()


POSTS: dict[str, Callable[[Room], tuple[str, Any]]] = {
    "verify": lambda room: (f"/agents/{room.agent_id}/verify", {"action": SUM, "context": PLACE}),
    "a tool": lambda room: (f"/agents/{room.agent_id}/tools/get_weather", {"parameters": {"n": 1}, "context": PLACE}),
    "approve": lambda room: (f"/approvals/{_pending(room)}/approve", {"reason": "fine"}),
    "suspend": lambda room: (f"/agents/{room.agent_id}/suspend", {"reason": "stop"}),
}


def _post_at(room: Room, window: Window, name: str, point: Point, failure: BaseException) -> bool:
    room.new_agent()
    path, body = POSTS[name](room)
    with room.wire.live(point, failure):
        answer = window.post(path, body)
    said = answer.json()
    if said.get("decision") in COMMITTED:
        room.told[said["action_id"]] = said["decision"]
    elif answer.status_code == 200 and name != "suspend":
        # A refusal, or an approval that happened although somebody could not be told of it.
        assert said.get("decision") == "DENIED" or said.get("state") == "approved", said
    room.require_served()
    room.new_agent()
    served = window.post(*POSTS["verify"](room))
    assert (served.status_code, served.json()["decision"]) == (200, "APPROVED")
    return room.wire.reached


def _posting(room: Room, name: str, failure: BaseException) -> int:
    with closing(Window(room)) as window:
        for _ in range(2):
            # The first request of an application finds nothing ready; the second is like every later one.
            room.new_agent()
            path, body = POSTS[name](room)
            with room.wire.live() as wire:
                assert window.post(path, body).status_code == 200
        points = wire.points()
        assert Point("MemoryLimiter.hit", 1) in points
        return sum(_post_at(room, window, name, point, failure) for point in points)


def test_a_fault_in_any_call_behind_a_request_is_a_refusal_and_the_next_request_is_served(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with _room(tmp_path / "data", monkeypatch) as room:
        assert _posting(room, "verify", FAILURES["surprise"]) > 10
        room.require_one_story()


@pytest.mark.drill
@campaign("P1 P3 P4", "a fault in every call behind a request")
@pytest.mark.parametrize("name", POSTS)
@pytest.mark.parametrize("failure", FAILURES)
def test_every_fault_in_every_call_behind_a_request_is_a_refusal_and_the_next_request_is_served(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, failure: str, figure: Figure
) -> None:
    with _room(tmp_path / "data", monkeypatch) as room:
        figure("fault points", _posting(room, name, FAILURES[failure]))
        room.require_one_story()
