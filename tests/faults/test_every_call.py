"""P4: a fault in every call. Each call that a decision or a change makes to any part fails once.

No approval without a record, nothing stays reserved, and the next request is served. The rows of
`test_injected_changes.py` list the store calls of each change; here every call of every part fails in turn.
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
from qwed.domain.budget import NO_COST
from qwed.domain.snapshot import SnapshotKeys
from qwed.gate import Gate, GateError, base
from qwed.gate import gate as gate_module
from qwed.kernel.admin import organisations, webhook
from qwed.kernel.audit_change import GATE, Actor
from qwed.kernel.authentication import find_key
from qwed.kernel.bootstrap import close_services, open_services
from qwed.settings import Settings
from qwed.store.protocol import StoreError
from tests.faults.injection_points import IN_WRITER, CallInjector, CallPoint, HangError, inject_calls
from tests.support.agent_names import unique_name
from tests.support.campaign_table import Figure, campaign
from tests.support.data_directory_check import COMMITTED, DataDirectoryCheck
from tests.support.kernel_changes import run_change
from tests.support.manual_clock import ManualClock

SUM = {"type": "calculate", "query": "2+2"}
MAIL = {"type": "send_email", "target": "operations", "parameters": {"body": "hello"}, "cost": {"usd": 0.25}}
DELETE = {"type": "file_delete", "target": "notes.txt"}
WORKED = {"type": "calculate", "query": "x+x = 2*x"}
ATTACK = {"type": "execute_sql", "query": "SELECT * FROM users WHERE id = 1 OR 1=1; DROP TABLE users --"}
PLACE = {"conversation_id": "c", "step_number": 1}
LEASE = 31
PATIENCE = 60.0
"""Timeout in seconds that detects a caller that would wait for ever."""

FAILURES = {
    "surprise": RuntimeError("surprise"),
    "store": StoreError("could not write"),
    "disk": OSError(28, "no space left on device"),
    "database": sqlite3.OperationalError("disk I/O error"),
    "late": TimeoutError("too late"),
    "memory": MemoryError(),
    "missing": KeyError("missing"),
}


class GateFixture:
    """Gate on real files, every call of which can fail."""

    def __init__(self, directory: Path, injector: CallInjector) -> None:
        self.directory = directory
        self.injector = injector
        self.manual_clock = ManualClock()
        settings = Settings(data_dir=directory, trust_min_days=0, trust_min_actions=0)
        self.opened = open_services(settings, clock=injector.clock(self.manual_clock.clock()))
        self.gate = Gate(self.opened)
        self.services = self.opened.services
        self.store: Any = self.services.store
        self.actor = Actor(GATE, self.opened.organisation_id, "owner")
        injector.around(self.store)
        self.agent_id = ""
        self._number = 0
        self.told: dict[str, str] = {}

    def new_agent(self, type_: str = "supervised") -> None:
        """Register an agent for each case, so that no fault is hidden by the state of an earlier one."""
        self._number += 1
        fields = {"name": unique_name(), "principal_id": f"p{self._number}", "type": type_}
        self.agent_id = self.gate.register_agent(**fields, budget={"max_daily_cost_usd": 10})["agent_id"]

    def ask(self, action: Any = SUM, conversation: str = "c", **more: Any) -> Any:
        answer = self.gate.verify_action(
            self.agent_id, action, {"conversation_id": conversation, "step_number": 1}, **more
        )
        if answer.decision in COMMITTED:
            self.told[answer.action_id] = answer.decision
        return answer

    def require_served(self) -> None:
        """Require that nothing is reserved after the lease, and that the next request is decided."""
        self.manual_clock.advance(LEASE)
        bystander, self.agent_id = self.agent_id, ""
        self.new_agent()
        assert self.ask(conversation="next").decision == "APPROVED"
        self.agent_id = bystander
        agents = self.store.list_agents(self.opened.organisation_id, 10_000, "")
        assert [one.agent_id for one in agents if self.store.load(SnapshotKeys(one.agent_id)).reserved != NO_COST] == []
        assert len(self.store.reservations) == 0

    def require_consistent(self) -> None:
        """Require that the data on disk is consistent and contains every reported decision."""
        self.gate.close()
        books = DataDirectoryCheck(self.directory)
        books.require_consistent()
        logged = {one.activity_id: one.decision for one in books.activities}
        assert self.told == {action_id: logged.get(action_id) for action_id in self.told}


class GateOperation(NamedTuple):
    """Operation on a gate: its preparation and its call."""

    prepare: Callable[[GateFixture], Any]
    act: Callable[[GateFixture, Any], Any]


def _nothing(_room: GateFixture) -> None:
    return None


def _pending(gate_fixture: GateFixture) -> Any:
    answer = gate_fixture.ask(MAIL)
    assert answer.decision == "PENDING", answer
    return answer.approval_id


def _run_out(gate_fixture: GateFixture) -> Any:
    approval_id = _pending(gate_fixture)
    gate_fixture.manual_clock.advance(86_401)
    return approval_id


def _second_key(gate_fixture: GateFixture) -> Any:
    return run_change(organisations.add_key("second", "owner", gate_fixture.actor, gate_fixture.services)).key.key_id


def _attested(gate_fixture: GateFixture) -> Any:
    answer = gate_fixture.ask(options={"require_attestation": True})
    return gate_fixture.gate.get_action(gate_fixture.agent_id, answer.action_id).attestation_id


def _answered(gate_fixture: GateFixture) -> Any:
    assert gate_fixture.ask(idempotency_key="again").decision == "APPROVED"


DECISIONS: dict[str, GateOperation] = {
    "approved": GateOperation(_nothing, lambda gate_fixture, _: gate_fixture.ask()),
    "attested": GateOperation(
        _nothing, lambda gate_fixture, _: gate_fixture.ask(options={"require_attestation": True})
    ),
    "chained": GateOperation(_nothing, lambda gate_fixture, _: gate_fixture.ask(options={"chain_id": "chain"})),
    "with a key": GateOperation(_nothing, lambda gate_fixture, _: gate_fixture.ask(idempotency_key="k")),
    "asked again with its key": GateOperation(
        _answered, lambda gate_fixture, _: gate_fixture.ask(idempotency_key="again")
    ),
    "pending": GateOperation(_nothing, lambda gate_fixture, _: gate_fixture.ask(MAIL)),
    "of high risk": GateOperation(
        lambda gate_fixture: gate_fixture.new_agent("trusted"), lambda gate_fixture, _: gate_fixture.ask(DELETE)
    ),
    "an attack": GateOperation(_nothing, lambda gate_fixture, _: gate_fixture.ask(ATTACK)),
    "behind what has run out": GateOperation(_run_out, lambda gate_fixture, _: gate_fixture.ask(conversation="later")),
}
CHANGES: dict[str, GateOperation] = {
    "register": GateOperation(
        _nothing, lambda gate_fixture, _: gate_fixture.gate.register_agent(name=unique_name("b"), principal_id="p")
    ),
    "approve": GateOperation(_pending, lambda gate_fixture, given: gate_fixture.gate.approve(given, "fine")),
    "reject": GateOperation(_pending, lambda gate_fixture, given: gate_fixture.gate.reject(given, "no")),
    "suspend": GateOperation(
        _nothing, lambda gate_fixture, _: gate_fixture.gate.suspend_agent(gate_fixture.agent_id, "stop")
    ),
    "complain": GateOperation(
        _nothing, lambda gate_fixture, _: gate_fixture.gate.file_complaint(gate_fixture.agent_id, "stop")
    ),
    "reactivate": GateOperation(
        lambda gate_fixture: gate_fixture.gate.suspend_agent(gate_fixture.agent_id, "stop"),
        lambda gate_fixture, _: gate_fixture.gate.reactivate_agent(gate_fixture.agent_id, "go on"),
    ),
    "rotate a token": GateOperation(
        _nothing, lambda gate_fixture, _: gate_fixture.gate.rotate_token(gate_fixture.agent_id)
    ),
    "ask for trust": GateOperation(
        _nothing, lambda gate_fixture, _: gate_fixture.gate.request_trust_change(gate_fixture.agent_id, 2)
    ),
    "raise trust": GateOperation(
        lambda gate_fixture: gate_fixture.gate.request_trust_change(gate_fixture.agent_id, 2)["approval_id"],
        lambda gate_fixture, given: gate_fixture.gate.approve(given, "earned"),
    ),
    "lower trust": GateOperation(
        _nothing, lambda gate_fixture, _: gate_fixture.gate.reduce_trust(gate_fixture.agent_id, 0)
    ),
    "log an execution": GateOperation(
        lambda gate_fixture: gate_fixture.ask().action_id,
        lambda gate_fixture, given: gate_fixture.gate.log_execution(gate_fixture.agent_id, given, True, {"rows": 1}),
    ),
    "erase": GateOperation(
        lambda gate_fixture: gate_fixture.ask() and gate_fixture.gate.get_agent(gate_fixture.agent_id)["principal_id"],
        lambda gate_fixture, given: gate_fixture.gate.erase(given),
    ),
    "add a key": GateOperation(
        _nothing,
        lambda gate_fixture, _: run_change(
            organisations.add_key("k", "member", gate_fixture.actor, gate_fixture.services)
        ),
    ),
    "revoke a key": GateOperation(
        _second_key,
        lambda gate_fixture, given: run_change(
            organisations.revoke_key(given, gate_fixture.actor, gate_fixture.services)
        ),
    ),
    "add an organisation": GateOperation(
        _nothing,
        lambda gate_fixture, _: run_change(
            organisations.add_organisation("o", gate_fixture.actor, gate_fixture.services)
        ),
    ),
    "revoke an attestation": GateOperation(
        _attested, lambda gate_fixture, given: gate_fixture.gate.revoke_attestation(given, "by mistake")
    ),
    "rotate the signing key": GateOperation(
        _nothing, lambda gate_fixture, _: gate_fixture.gate.rotate_signing_key("once a year")
    ),
    "set a webhook": GateOperation(
        _nothing,
        lambda gate_fixture, _: run_change(
            webhook.set_webhook(
                webhook.WebhookRequest("https://example.com/", ("pending",)), gate_fixture.actor, gate_fixture.services
            )
        ),
    ),
    "look at the budget": GateOperation(
        _run_out, lambda gate_fixture, _: gate_fixture.gate.get_agent_budget(gate_fixture.agent_id)
    ),
}
VERBS = DECISIONS | CHANGES
RAISED = (*{type(failure) for failure in FAILURES.values()}, GateError)


def _wait(patch: pytest.MonkeyPatch, seconds: float) -> None:
    """Set the timeout of gate calls."""
    for module in (gate_module, base):
        patch.setattr(module, "TIMEOUT_SECONDS", seconds)


@contextmanager
def _gate_fixture(directory: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[GateFixture]:
    _wait(monkeypatch, PATIENCE)
    with inject_calls(monkeypatch) as injector:
        gate_fixture = GateFixture(directory, injector)
        with closing(gate_fixture.gate):
            yield gate_fixture


def _points(gate_fixture: GateFixture, verb: GateOperation) -> list[CallPoint]:
    """Return every call that the operation makes without a fault."""
    gate_fixture.new_agent()
    prepared = verb.prepare(gate_fixture)
    with gate_fixture.injector.live() as injector:
        verb.act(gate_fixture, prepared)
    return injector.points()


def _fail_at(gate_fixture: GateFixture, verb: GateOperation, point: CallPoint, failure: BaseException) -> bool:
    """Return True if the point was reached; require that the gate still serves."""
    gate_fixture.new_agent()
    prepared = verb.prepare(gate_fixture)
    with gate_fixture.injector.live(point, failure), suppress(*RAISED):
        verb.act(gate_fixture, prepared)
    gate_fixture.require_served()
    _require_may_be_asked_again(gate_fixture, verb, prepared)
    return gate_fixture.injector.reached


def _require_may_be_asked_again(gate_fixture: GateFixture, verb: GateOperation, prepared: Any) -> None:
    """Require that a second try has a clear result, whatever the first one left behind."""
    try:
        answer = verb.act(gate_fixture, prepared)
    except GateError:
        return
    decision = getattr(answer, "decision", None)
    if decision == "DENIED":
        assert answer.error["check"] not in ("decision_made", "dependency_up"), answer.error


def _campaign(gate_fixture: GateFixture, verb: GateOperation, failures: list[BaseException]) -> int:
    reached = 0
    for point in _points(gate_fixture, verb):
        for failure in failures:
            reached += _fail_at(gate_fixture, verb, point, failure)
    return reached


SOON = 0.2
"""Seconds that a caller waits for a hanging disk."""


def _hang_at(gate_fixture: GateFixture, verb: GateOperation, point: CallPoint, monkeypatch: pytest.MonkeyPatch) -> bool:
    """Do the same with a writer that blocks until the caller has given up."""
    gate_fixture.new_agent()
    prepared = verb.prepare(gate_fixture)
    hang = HangError()
    with monkeypatch.context() as patched, gate_fixture.injector.live(point, hang), suppress(*RAISED):
        _wait(patched, SOON)
        verb.act(gate_fixture, prepared)
    hang.go.set()
    # From here on every earlier write is on disk or refused.
    gate_fixture.store.durable().wait_result(30)
    gate_fixture.require_served()
    _require_may_be_asked_again(gate_fixture, verb, prepared)
    return gate_fixture.injector.reached


@pytest.mark.parametrize("name", ["approved", "approve"])
def test_a_fault_in_any_call_leaves_nothing_held_and_the_next_request_is_served(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    with _gate_fixture(tmp_path / "data", monkeypatch) as gate_fixture:
        assert _campaign(gate_fixture, VERBS[name], [FAILURES["surprise"]]) > 10
        gate_fixture.require_consistent()


@pytest.mark.drill
@campaign("P1 P3 P4", "a fault in every call")
@pytest.mark.parametrize("name", VERBS)
@pytest.mark.parametrize("failure", FAILURES)
def test_every_fault_in_every_call_leaves_nothing_held_and_the_next_request_is_served(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, failure: str, figure: Figure
) -> None:
    with _gate_fixture(tmp_path / "data", monkeypatch) as gate_fixture:
        reached = _campaign(gate_fixture, VERBS[name], [FAILURES[failure]])
        gate_fixture.require_consistent()
    figure("fault points", reached)
    figure("verbs with a kind of failure", 1)


@pytest.mark.drill
@campaign("P1 P3 P4", "a disk that hangs in every call")
@pytest.mark.parametrize("name", VERBS)
def test_a_writer_that_hangs_in_any_call_leaves_nothing_held_and_the_next_request_is_served(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, figure: Figure
) -> None:
    with _gate_fixture(tmp_path / "data", monkeypatch) as gate_fixture:
        points = [point for point in _points(gate_fixture, VERBS[name]) if point.name.endswith(IN_WRITER)]
        figure("fault points", sum(_hang_at(gate_fixture, VERBS[name], point, monkeypatch) for point in points))
        gate_fixture.require_consistent()


# Starts


def _start(
    directory: Path, injector: CallInjector, point: CallPoint | None = None, failure: BaseException | None = None
) -> None:
    """Open the gate with the injector active, and close it without."""
    with injector.live(point, failure):
        opened = open_services(Settings(data_dir=directory), clock=injector.clock(ManualClock().clock()))
    close_services(opened.services)


def _start_at(directory: Path, injector: CallInjector, point: CallPoint, failure: BaseException) -> bool:
    """Fail a start at this call; require that the next one has a valid owner key and serves."""
    with suppress(*RAISED):
        _start(directory, injector, point, failure)
    with qwed.open(directory) as gate:
        key = (directory / "owner.key").read_text().strip()
        assert find_key(key, gate.services.store) is not None
        agent_id = gate.register_agent(name=unique_name(), principal_id="p")["agent_id"]
        assert gate.verify_action(agent_id, SUM, PLACE).decision == "APPROVED"
    return injector.reached


def _starting(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, failure: BaseException, *, first: bool) -> int:
    with inject_calls(monkeypatch) as injector:
        lived_in = tmp_path / "lived in"
        if not first:
            _start(lived_in, injector)
        _start(tmp_path / "listened to" if first else lived_in, injector)
        reached = 0
        for number, point in enumerate(injector.points()):
            directory = tmp_path / f"{number}"
            if not first:
                shutil.copytree(lived_in, directory)
            reached += _start_at(directory, injector, point, failure)
        return reached


@pytest.mark.drill
@campaign("P1 P4", "a fault in every call of a start")
@pytest.mark.parametrize("first", [True, False], ids=["the first", "a later one"])
@pytest.mark.parametrize("failure", FAILURES)
def test_a_start_that_fails_in_any_call_leaves_a_house_in_which_the_next_one_serves(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, failure: str, first: bool, figure: Figure
) -> None:
    figure("fault points", _starting(tmp_path, monkeypatch, FAILURES[failure], first=first))


# Over HTTP, with authentication, rate limits and admission before the pipeline


class HttpCaller:
    """Calls the application directly on its own event loop."""

    def __init__(self, gate_fixture: GateFixture) -> None:
        self._loop = asyncio.new_event_loop()
        self._key = (gate_fixture.directory / "owner.key").read_text().strip()
        # Body timeouts use a clock without faults; everything else uses the one that fails.
        clock = replace(gate_fixture.services.clock, monotonic=gate_fixture.manual_clock.clock().monotonic)
        transport = httpx.ASGITransport(App(replace(gate_fixture.services, clock=clock)), raise_app_exceptions=False)
        self._client = httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1")
        gate_fixture.injector.around(gate_fixture.store)

    def post(self, path: str, body: Any) -> httpx.Response:
        """Return the answer to the owner."""
        return self._loop.run_until_complete(self._client.post(path, json=body, headers={"X-API-Key": self._key}))

    def close(self) -> None:
        """Close the client and the loop."""
        self._loop.run_until_complete(self._client.aclose())
        self._loop.close()


POSTS: dict[str, Callable[[GateFixture], tuple[str, Any]]] = {
    "verify": lambda gate_fixture: (f"/agents/{gate_fixture.agent_id}/verify", {"action": SUM, "context": PLACE}),
    "a tool": lambda gate_fixture: (
        f"/agents/{gate_fixture.agent_id}/tools/get_weather",
        {"parameters": {"n": 1}, "context": PLACE},
    ),
    "approve": lambda gate_fixture: (f"/approvals/{_pending(gate_fixture)}/approve", {"reason": "fine"}),
    "suspend": lambda gate_fixture: (f"/agents/{gate_fixture.agent_id}/suspend", {"reason": "stop"}),
}


def _post_at(
    gate_fixture: GateFixture, http_caller: HttpCaller, name: str, point: CallPoint, failure: BaseException
) -> bool:
    gate_fixture.new_agent()
    path, body = POSTS[name](gate_fixture)
    with gate_fixture.injector.live(point, failure):
        answer = http_caller.post(path, body)
    body_of_answer = answer.json()
    if body_of_answer.get("decision") in COMMITTED:
        gate_fixture.told[body_of_answer["action_id"]] = body_of_answer["decision"]
    elif answer.status_code == 200 and name != "suspend":
        # A refusal, or an approval that was made although a notification failed.
        assert body_of_answer.get("decision") == "DENIED" or body_of_answer.get("state") == "approved", body_of_answer
    gate_fixture.require_served()
    gate_fixture.new_agent()
    served = http_caller.post(*POSTS["verify"](gate_fixture))
    assert (served.status_code, served.json()["decision"]) == (200, "APPROVED")
    return gate_fixture.injector.reached


def _posting(gate_fixture: GateFixture, name: str, failure: BaseException) -> int:
    with closing(HttpCaller(gate_fixture)) as http_caller:
        for _ in range(2):
            # The first request of an application fills its caches; the second is like every later one.
            gate_fixture.new_agent()
            path, body = POSTS[name](gate_fixture)
            with gate_fixture.injector.live() as injector:
                assert http_caller.post(path, body).status_code == 200
        points = injector.points()
        assert CallPoint("MemorySlidingWindow.hit", 1) in points
        return sum(_post_at(gate_fixture, http_caller, name, point, failure) for point in points)


def test_a_fault_in_any_call_behind_a_request_is_a_refusal_and_the_next_request_is_served(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with _gate_fixture(tmp_path / "data", monkeypatch) as gate_fixture:
        assert _posting(gate_fixture, "verify", FAILURES["surprise"]) > 10
        gate_fixture.require_consistent()


@pytest.mark.drill
@campaign("P1 P3 P4", "a fault in every call behind a request")
@pytest.mark.parametrize("name", POSTS)
@pytest.mark.parametrize("failure", FAILURES)
def test_every_fault_in_every_call_behind_a_request_is_a_refusal_and_the_next_request_is_served(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, failure: str, figure: Figure
) -> None:
    with _gate_fixture(tmp_path / "data", monkeypatch) as gate_fixture:
        figure("fault points", _posting(gate_fixture, name, FAILURES[failure]))
        gate_fixture.require_consistent()
