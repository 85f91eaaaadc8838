"""P3, P4 and P10 for changes: whatever fails during a change, all of it happened or none of it.

The parts are real; one call of one of them raises. Each change is tried with each of its store calls failing.
"""

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from qwed.futures import Future, notify, run_in_thread
from qwed.gate import Gate, GateError
from qwed.kernel.admin import organisations, webhook
from qwed.kernel.admin.approvals import expire
from qwed.kernel.audit_change import GATE, Actor
from qwed.kernel.bootstrap import OpenedServices, close_services, open_services
from qwed.kernel.services import Services
from qwed.settings import Settings
from qwed.store.protocol import StoreError
from tests.support.agent_names import unique_name
from tests.support.fault_injection import FailingProxy, RecordingProxy, ReplacingProxy
from tests.support.kernel_changes import run_change
from tests.support.manual_clock import ManualClock
from tests.support.store_parts import StoreParts

SUM = {"type": "calculate", "query": "2+2"}
EMAIL = {"type": "send_email", "target": "operations", "parameters": {"body": "hello"}, "cost": {"usd": 0.25}}
HELD = 250_000

FAILURES = [
    RuntimeError("surprise"),
    StoreError("could not write"),
    OSError(28, "no space left on device"),
    TimeoutError("too late"),
    MemoryError(),
]
WAYS = [pytest.param(failure, id=type(failure).__name__) for failure in FAILURES]
RAISED = (*map(type, FAILURES), GateError)

TABLES = (
    *("organisations", "keys", "agents", "tools", "conversations", "usage", "activities", "daily_totals", "approvals"),
    *("idempotency_keys", "executions", "webhooks", "outbox", "revocations"),
)


class ChangeFixture:
    """Real services, an agent with a pending approval, and access to everything stored."""

    def __init__(self, opened: OpenedServices, manual_clock: ManualClock) -> None:
        self.opened = opened
        self.manual_clock = manual_clock
        self.services: Services = opened.services
        self.store: Any = opened.services.store
        self.gate = Gate(opened)
        self.actor = Actor(GATE, opened.organisation_id, "owner")
        self.agent_id: str = self.gate.register_agent(name=unique_name(), principal_id="p")["agent_id"]

    def broken(self, store: Any) -> Gate:
        return Gate(self.opened._replace(services=replace(self.services, store=store)))

    def rows(self, statement: str) -> list[Any]:
        """Return all rows of a query."""
        return StoreParts(self.store).rows(statement)

    def everything(self) -> dict[str, list[Any]]:
        return {table: self.rows(f"SELECT * FROM {table}") for table in TABLES}

    def events(self) -> Counter[str]:
        """Return the changes in the log, including those that no caller waited for."""
        self.store.durable().wait_result(30)
        rows = self.rows("SELECT event FROM activities WHERE event != ''")
        return Counter(event for (event,) in rows)

    def ask(self, action: Any = EMAIL, conversation: str = "c") -> Any:
        return self.gate.verify_action(self.agent_id, action, {"conversation_id": conversation, "step_number": 1})


@pytest.fixture
def change_fixture(request: pytest.FixtureRequest, memory_path: Path) -> Iterator[ChangeFixture]:
    manual_clock = ManualClock()
    settings = Settings(data_dir=memory_path / "data", trust_min_days=0, trust_min_actions=0)
    opened = open_services(
        settings, in_memory=getattr(request, "param", "memory") == "memory", clock=manual_clock.clock()
    )
    yield ChangeFixture(opened, manual_clock)
    close_services(opened.services)


class ChangeCase(NamedTuple):
    """Change by a person, an agent or time: its preparation, its call and its events."""

    prepare: Callable[[ChangeFixture], Any]
    act: Callable[[Gate, ChangeFixture, Any], Any]
    event: str | tuple[str, ...]
    calls: tuple[str, ...]
    """Store calls that it makes, each as often as it is made."""

    @property
    def left(self) -> Counter[str]:
        """Events in the log afterwards."""
        return Counter([self.event] if isinstance(self.event, str) else self.event)


def _pending(change_fixture: ChangeFixture) -> Any:
    answer = change_fixture.ask()
    assert answer.decision == "PENDING"
    return answer.approval_id


def _run_out(change_fixture: ChangeFixture) -> Any:
    approval_id = _pending(change_fixture)
    change_fixture.manual_clock.advance(86_401)
    return approval_id


def _elevation(change_fixture: ChangeFixture) -> Any:
    return change_fixture.gate.request_trust_change(change_fixture.agent_id, 2)["approval_id"]


def _stopped(change_fixture: ChangeFixture) -> None:
    change_fixture.gate.suspend_agent(change_fixture.agent_id, "for the test")


def _second_key(change_fixture: ChangeFixture) -> Any:
    created = run_in_thread(organisations.add_key("second", "owner", change_fixture.actor, change_fixture.services), 30)
    assert isinstance(created, organisations.NewKey)
    return created.key.key_id


def _permitted(change_fixture: ChangeFixture) -> Any:
    return change_fixture.ask(SUM).action_id


def _attested(change_fixture: ChangeFixture) -> Any:
    answer = change_fixture.gate.verify_action(
        change_fixture.agent_id, SUM, {"conversation_id": "c", "step_number": 1}, {"require_attestation": True}
    )
    return change_fixture.gate.get_action(change_fixture.agent_id, answer.action_id).attestation_id


def _nothing(_desk: ChangeFixture) -> None:
    return None


def _kernel(walk: Callable[[ChangeFixture, Any, Services], Any]) -> Callable[[Gate, ChangeFixture, Any], Any]:
    """Return a change that the gate has no method for."""
    return lambda gate, change_fixture, given: run_change(walk(change_fixture, given, gate.services))


WEBHOOK = webhook.WebhookRequest("https://example.com/", ("pending",))
LOOKUPS = ("expired_approvals", "find_approval")
CHANGE_CASES = {
    "approve": ChangeCase(
        _pending,
        lambda gate, _desk, given: gate.approve(given, "fine"),
        "approved",
        (
            *LOOKUPS,
            "list_keys",
            "find_agent",
            "halted",
            "tool_rows",
            "policies",
            "commit",
            "find_approval",
            "find_agent",
        ),
    ),
    "reject": ChangeCase(
        _pending,
        lambda gate, _desk, given: gate.reject(given, "no"),
        "rejected",
        (*LOOKUPS, "commit", "find_approval", "find_agent"),
    ),
    "expire": ChangeCase(
        _run_out,
        lambda gate, change_fixture, _given: gate.get_agent_budget(change_fixture.agent_id),
        "expired",
        ("find_agent", "expired_approvals_of", "commit", "usage_counters"),
    ),
    "expire for everyone": ChangeCase(
        _run_out,
        lambda gate, change_fixture, _given: expire(gate.services, change_fixture.manual_clock.now),
        "expired",
        ("expired_approvals", "commit"),
    ),
    "suspend": ChangeCase(
        _nothing,
        lambda gate, change_fixture, _given: gate.suspend_agent(change_fixture.agent_id, "stop"),
        "suspended",
        ("find_agent", "webhook", "commit", "find_agent", "halted"),
    ),
    "complain": ChangeCase(
        _nothing,
        lambda gate, change_fixture, _given: gate.file_complaint(change_fixture.agent_id, "stop"),
        "complaint",
        ("find_agent", "webhook", "commit", "find_agent", "halted"),
    ),
    "reactivate": ChangeCase(
        _stopped,
        lambda gate, change_fixture, _given: gate.reactivate_agent(change_fixture.agent_id, "go on"),
        "reactivated",
        ("find_agent", "commit", "halted"),
    ),
    "rotate": ChangeCase(
        _nothing,
        lambda gate, change_fixture, _given: gate.rotate_token(change_fixture.agent_id),
        "token_rotated",
        ("find_agent", "commit"),
    ),
    "ask for trust": ChangeCase(
        _nothing,
        lambda gate, change_fixture, _given: gate.request_trust_change(change_fixture.agent_id, 2),
        "trust_requested",
        ("find_agent", "halted", "trust_evidence", "expired_approvals_of", "webhook", "commit"),
    ),
    "elevate": ChangeCase(
        _elevation,
        lambda gate, _desk, given: gate.approve(given, "earned"),
        "trust_raised",
        (*LOOKUPS, "list_keys", "find_agent", "halted", "trust_evidence", "commit", "find_approval", "find_agent"),
    ),
    "lower": ChangeCase(
        _nothing,
        lambda gate, change_fixture, _given: gate.reduce_trust(change_fixture.agent_id, 0),
        "trust_lowered",
        ("find_agent", "find_agent", "commit", "halted"),
    ),
    "log an execution": ChangeCase(
        _permitted,
        lambda gate, change_fixture, given: gate.log_execution(change_fixture.agent_id, given, True, {"rows": 1}),
        "executed",
        ("find_agent", "find_activity", "halted", "commit", *(("expired_approvals", "find_activity") * 2)),
    ),
    "halt": ChangeCase(
        _nothing, lambda gate, _desk, _given: gate.suspend_all("stop"), "halted", ("halted", "webhook", "commit")
    ),
    "resume": ChangeCase(
        lambda change_fixture: change_fixture.gate.suspend_all("stop"),
        lambda gate, _desk, _given: gate.reactivate_all("go on"),
        "resumed",
        ("halted", "commit"),
    ),
    "revoke": ChangeCase(
        _second_key,
        _kernel(
            lambda change_fixture, given, services: organisations.revoke_key(given, change_fixture.actor, services)
        ),
        "key_revoked",
        ("list_keys", "commit"),
    ),
    "add a key": ChangeCase(
        _nothing,
        _kernel(
            lambda change_fixture, _given, services: organisations.add_key(
                "k", "member", change_fixture.actor, services
            )
        ),
        "key_added",
        ("list_keys", "commit"),
    ),
    "add an organisation": ChangeCase(
        _nothing,
        _kernel(
            lambda change_fixture, _given, services: organisations.add_organisation("o", change_fixture.actor, services)
        ),
        ("organisation_added", "key_added"),
        ("first_organisation", "commit"),
    ),
    "revoke an attestation": ChangeCase(
        _attested,
        lambda gate, _desk, given: gate.revoke_attestation(given, "by mistake"),
        "attestation_revoked",
        ("find_attestation", "commit", "first_head", "nodes", "revoked", "find_activity"),
    ),
    "rotate the signing key": ChangeCase(
        _nothing,
        lambda gate, _desk, _given: gate.rotate_signing_key("once a year"),
        "signing_key_rotated",
        ("first_organisation", "commit"),
    ),
    "set a webhook": ChangeCase(
        _nothing,
        _kernel(lambda change_fixture, _given, services: webhook.set_webhook(WEBHOOK, change_fixture.actor, services)),
        "webhook_changed",
        ("commit",),
    ),
}
all_changes = pytest.mark.parametrize("case", CHANGE_CASES.values(), ids=CHANGE_CASES)
CALLS = [
    pytest.param(case, method, case.calls[: place + 1].count(method), id=f"{name}, {place} {method}")
    for name, case in CHANGE_CASES.items()
    for place, method in enumerate(case.calls)
]


@all_changes
def test_a_verb_asks_the_store_for_what_its_row_says(change_fixture: ChangeFixture, case: ChangeCase) -> None:
    prepared = case.prepare(change_fixture)
    recorder = RecordingProxy(change_fixture.store)
    before = change_fixture.events()
    case.act(change_fixture.broken(recorder), change_fixture, prepared)
    assert Counter(recorder.called) == Counter(case.calls)
    assert change_fixture.events() - before == case.left


@pytest.mark.parametrize("failure", WAYS)
@pytest.mark.parametrize(("case", "method", "nth"), CALLS)
def test_a_store_that_fails_in_one_call_leaves_all_of_a_change_or_nothing_of_it(
    change_fixture: ChangeFixture, case: ChangeCase, method: str, nth: int, failure: BaseException
) -> None:
    prepared = case.prepare(change_fixture)
    before, events = change_fixture.everything(), change_fixture.events()
    failing = FailingProxy(change_fixture.store, method, failure, nth)
    with pytest.raises(RAISED):
        case.act(change_fixture.broken(failing), change_fixture, prepared)
    assert failing.calls >= nth
    happened = change_fixture.events() - events
    if not happened:
        assert change_fixture.everything() == before
        case.act(change_fixture.gate, change_fixture, prepared)
        happened = change_fixture.events() - events
    assert happened == case.left
    _require_charged_once(change_fixture)


@pytest.mark.parametrize("change_fixture", ["memory", "file"], indirect=True)
@pytest.mark.parametrize("failure", WAYS)
@all_changes
def test_a_change_that_was_accepted_and_then_failed_is_no_success(
    change_fixture: ChangeFixture, case: ChangeCase, failure: BaseException
) -> None:
    """No caller gets a success if the store accepted the change and then could not write it."""
    prepared = case.prepare(change_fixture)
    before, events = change_fixture.everything(), change_fixture.events()
    gate = change_fixture.broken(ReplacingProxy(change_fixture.store, commit=_failed(failure)))
    if case.event == "expired" and "usage_counters" not in case.calls:
        # An expiry that no caller waits for is written at the next lookup. Who reads the budget waits for it.
        case.act(gate, change_fixture, prepared)
    else:
        with pytest.raises(RAISED):
            case.act(gate, change_fixture, prepared)
    assert change_fixture.everything() == before
    case.act(change_fixture.gate, change_fixture, prepared)
    assert change_fixture.events() - events == case.left
    _require_charged_once(change_fixture)


@pytest.mark.parametrize("failure", WAYS)
@pytest.mark.parametrize("stage", ["change", "changed"])
@pytest.mark.parametrize(
    "case", [case for case in CHANGE_CASES.values() if case.event != "expired"], ids=lambda v: "".join(v.event)
)
def test_a_surprise_before_or_after_the_commit_is_no_success_and_happens_at_most_once(
    change_fixture: ChangeFixture, case: ChangeCase, stage: str, failure: BaseException
) -> None:
    prepared = case.prepare(change_fixture)
    before, events = change_fixture.everything(), change_fixture.events()

    def hook(name: str) -> None:
        if name == stage:
            raise failure

    gate = Gate(change_fixture.opened._replace(services=replace(change_fixture.services, at_stage=hook)))
    with pytest.raises(RAISED):
        case.act(gate, change_fixture, prepared)
    happened = change_fixture.events() - events
    assert happened == (Counter() if stage == "change" else case.left)
    if stage == "change":
        assert change_fixture.everything() == before
    _require_charged_once(change_fixture)


def _require_charged_once(change_fixture: ChangeFixture) -> None:
    """Require that pending cost is reserved, approved cost is used, and refused cost is neither."""
    spent = change_fixture.store.usage_counters(change_fixture.agent_id, change_fixture.manual_clock.now)
    rows = change_fixture.rows("SELECT state, cost FROM approvals WHERE kind = 'action'")
    assert spent.pending_cost == sum(cost for state, cost in rows if state == "pending")
    assert spent.open_approvals == sum(state == "pending" for state, _cost in rows)
    approved = sum(cost for state, cost in rows if state == "approved")
    # The one action that is permitted without an approval costs a cent.
    decided = 10_000 * len(change_fixture.rows("SELECT 1 FROM activities WHERE decision = 'APPROVED'"))
    assert spent.cost_day == approved + decided
    total = change_fixture.store.activity_summary(change_fixture.agent_id, None, None).cost
    assert total == approved + decided


@pytest.mark.parametrize("failure", WAYS)
@pytest.mark.parametrize("change_fixture", ["memory", "file"], indirect=True)
def test_an_approval_without_its_signature_is_kept_and_its_signature_is_issued_later(
    change_fixture: ChangeFixture, failure: BaseException
) -> None:
    """The attestation is created from the log on demand, so an approval never waits for it."""
    approval_id = _pending(change_fixture)
    signer: Any = FailingProxy(change_fixture.services.signer, "attest", failure)
    gate = Gate(change_fixture.opened._replace(services=replace(change_fixture.services, signer=signer)))
    action_id = gate.approve(approval_id, "fine")["action_id"]
    with pytest.raises(type(failure)):
        gate.get_action(change_fixture.agent_id, action_id)
    assert change_fixture.gate.get_action(change_fixture.agent_id, action_id).attestation is not None
    _require_charged_once(change_fixture)


@pytest.mark.parametrize("way", ["rejected", "expired"])
def test_what_was_not_approved_has_no_attestation_and_nothing_to_execute(
    change_fixture: ChangeFixture, way: str
) -> None:
    answer = change_fixture.ask()
    if way == "rejected":
        change_fixture.gate.reject(answer.approval_id, "no")
    else:
        change_fixture.manual_clock.advance(86_401)
    action = change_fixture.gate.get_action(change_fixture.agent_id, answer.action_id)
    assert (action.decision, action.attestation, action.verified_query) == ("DENIED", None, None)
    with pytest.raises(GateError, match="not permitted"):
        change_fixture.gate.log_execution(change_fixture.agent_id, answer.action_id, True)


def _failed(failure: BaseException) -> Future[Any]:
    ticket: Future[Any] = Future()
    ticket.set_exception(failure)
    notify([ticket])
    return ticket
