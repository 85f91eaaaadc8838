"""P3, P4 and P10 around decisions: whatever fails while something is changed, all of it happened or nothing did.

The parts are real; one call of one of them raises. Each verb is tried with each call it makes of the store failing.
"""

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from qwed.gate import Gate, GateError
from qwed.kernel.change import GATE, Actor
from qwed.kernel.people import organisations, webhook
from qwed.kernel.people.approvals import expire
from qwed.kernel.services import Services
from qwed.kernel.wiring import Opened, close_services, open_services
from qwed.settings import Settings
from qwed.store.protocol import StoreError
from qwed.waiting import Ticket, announce, in_thread
from tests.support.clock import HandClock
from tests.support.failing import Failing, Instead, Listening

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
    *("organisations", "keys", "agents", "tools", "conversations", "usage", "activities", "tallies", "approvals"),
    *("memories", "executions", "webhooks", "outbox", "revocations"),
)


class Desk:
    """Real services, an agent that waits for a person, and everything that is kept."""

    def __init__(self, opened: Opened, hands: HandClock) -> None:
        self.opened = opened
        self.hands = hands
        self.services: Services = opened.services
        self.store: Any = opened.services.store
        self.gate = Gate(opened)
        self.actor = Actor(GATE, opened.organisation_id, "owner")
        self.agent_id: str = self.gate.register_agent(name="a", principal_id="p")["agent_id"]

    def broken(self, store: Any) -> Gate:
        return Gate(self.opened._replace(services=replace(self.services, store=store)))

    def everything(self) -> dict[str, list[Any]]:
        return {table: self.store._all(f"SELECT * FROM {table}", ()) for table in TABLES}

    def events(self) -> Counter[str]:
        """What was changed, whether or not anybody waited for it."""
        self.store._write().block(30)
        found = self.store._all("SELECT event FROM activities WHERE event != ''", ())
        return Counter(event for (event,) in found)

    def ask(self, action: Any = EMAIL, conversation: str = "c") -> Any:
        return self.gate.verify_action(self.agent_id, action, {"conversation_id": conversation, "step_number": 1})


@pytest.fixture
def desk(request: pytest.FixtureRequest, memory_path: Path) -> Iterator[Desk]:
    hands = HandClock()
    settings = Settings(data_dir=memory_path / "data", trust_min_days=0, trust_min_actions=0)
    opened = open_services(settings, in_memory=getattr(request, "param", "memory") == "memory", clock=hands.clock())
    yield Desk(opened, hands)
    close_services(opened.services)


class Verb(NamedTuple):
    """Something a person, an agent or time does: what must be there, how it is done, which events it leaves."""

    prepare: Callable[[Desk], Any]
    act: Callable[[Gate, Desk, Any], Any]
    event: str | tuple[str, ...]
    calls: tuple[str, ...]
    """What it asks of the store, each call once for each time it makes it."""

    @property
    def left(self) -> Counter[str]:
        """What stands in the logs afterwards."""
        return Counter([self.event] if isinstance(self.event, str) else self.event)


def _pending(desk: Desk) -> Any:
    answer = desk.ask()
    assert answer.decision == "PENDING"
    return answer.approval_id


def _run_out(desk: Desk) -> Any:
    approval_id = _pending(desk)
    desk.hands.turn(86_401)
    return approval_id


def _elevation(desk: Desk) -> Any:
    return desk.gate.request_trust_change(desk.agent_id, 2)["approval_id"]


def _stopped(desk: Desk) -> None:
    desk.gate.suspend_agent(desk.agent_id, "for the test")


def _second_key(desk: Desk) -> Any:
    made = in_thread(organisations.add_key("second", "owner", desk.actor, desk.services), 30)
    assert isinstance(made, organisations.NewKey)
    return made.key.key_id


def _permitted(desk: Desk) -> Any:
    return desk.ask(SUM).action_id


def _attested(desk: Desk) -> Any:
    answer = desk.gate.verify_action(
        desk.agent_id, SUM, {"conversation_id": "c", "step_number": 1}, {"require_attestation": True}
    )
    return desk.gate.get_action(desk.agent_id, answer.action_id).attestation_id


def _nothing(_desk: Desk) -> None:
    return None


def _kernel(walk: Callable[[Desk, Any, Services], Any]) -> Callable[[Gate, Desk, Any], Any]:
    """A verb the gate has no word for."""
    return lambda gate, desk, given: gate._act(walk(desk, given, gate.services))


WISH = webhook.Wish("https://example.com/", ("pending",))
FOUND = ("expired_approvals", "find_approval")
VERBS = {
    "approve": Verb(
        _pending,
        lambda gate, _desk, given: gate.approve(given, "fine"),
        "approved",
        (*FOUND, "list_keys", "find_agent", "halted", "tool_rows", "change", "find_approval"),
    ),
    "reject": Verb(
        _pending, lambda gate, _desk, given: gate.reject(given, "no"), "rejected", (*FOUND, "change", "find_approval")
    ),
    "expire": Verb(
        _run_out,
        lambda gate, desk, _given: gate.get_agent_budget(desk.agent_id),
        "expired",
        ("find_agent", "expired_approvals_of", "change", "durable", "spent"),
    ),
    "expire for everyone": Verb(
        _run_out,
        lambda gate, desk, _given: expire(gate.services, desk.hands.now),
        "expired",
        ("expired_approvals", "change"),
    ),
    "suspend": Verb(
        _nothing,
        lambda gate, desk, _given: gate.suspend_agent(desk.agent_id, "stop"),
        "suspended",
        ("find_agent", "webhook", "change", "find_agent", "halted"),
    ),
    "complain": Verb(
        _nothing,
        lambda gate, desk, _given: gate.file_complaint(desk.agent_id, "stop"),
        "complaint",
        ("find_agent", "webhook", "change", "find_agent", "halted"),
    ),
    "reactivate": Verb(
        _stopped,
        lambda gate, desk, _given: gate.reactivate_agent(desk.agent_id, "go on"),
        "reactivated",
        ("find_agent", "change", "halted"),
    ),
    "rotate": Verb(
        _nothing,
        lambda gate, desk, _given: gate.rotate_token(desk.agent_id),
        "token_rotated",
        ("find_agent", "change"),
    ),
    "ask for trust": Verb(
        _nothing,
        lambda gate, desk, _given: gate.request_trust_change(desk.agent_id, 2),
        "trust_requested",
        ("find_agent", "halted", "merit", "expired_approvals_of", "webhook", "change"),
    ),
    "elevate": Verb(
        _elevation,
        lambda gate, _desk, given: gate.approve(given, "earned"),
        "trust_raised",
        (*FOUND, "list_keys", "find_agent", "halted", "merit", "change", "find_approval"),
    ),
    "lower": Verb(
        _nothing,
        lambda gate, desk, _given: gate.reduce_trust(desk.agent_id, 0),
        "trust_lowered",
        ("find_agent", "change", "halted"),
    ),
    "log an execution": Verb(
        _permitted,
        lambda gate, desk, given: gate.log_execution(desk.agent_id, given, True, {"rows": 1}),
        "executed",
        ("find_agent", "find_activity", "halted", "change", *(("expired_approvals", "find_activity") * 2)),
    ),
    "halt": Verb(
        _nothing, lambda gate, _desk, _given: gate.suspend_all("stop"), "halted", ("halted", "webhook", "change")
    ),
    "resume": Verb(
        lambda desk: desk.gate.suspend_all("stop"),
        lambda gate, _desk, _given: gate.reactivate_all("go on"),
        "resumed",
        ("halted", "change"),
    ),
    "revoke": Verb(
        _second_key,
        _kernel(lambda desk, given, services: organisations.revoke_key(given, desk.actor, services)),
        "key_revoked",
        ("list_keys", "change"),
    ),
    "add a key": Verb(
        _nothing,
        _kernel(lambda desk, _given, services: organisations.add_key("k", "member", desk.actor, services)),
        "key_added",
        ("list_keys", "change"),
    ),
    "add an organisation": Verb(
        _nothing,
        _kernel(lambda desk, _given, services: organisations.add_organisation("o", desk.actor, services)),
        ("organisation_added", "key_added"),
        ("first_organisation", "change"),
    ),
    "revoke an attestation": Verb(
        _attested,
        lambda gate, _desk, given: gate.revoke_attestation(given, "by mistake"),
        "attestation_revoked",
        ("find_attestation", "change", "first_head", "nodes", "revoked", "find_activity"),
    ),
    "rotate the signing key": Verb(
        _nothing,
        lambda gate, _desk, _given: gate.rotate_signing_key("once a year"),
        "signing_key_rotated",
        ("first_organisation", "change"),
    ),
    "set a webhook": Verb(
        _nothing,
        _kernel(lambda desk, _given, services: webhook.set_webhook(WISH, desk.actor, services)),
        "webhook_changed",
        ("change",),
    ),
}
verbs = pytest.mark.parametrize("verb", VERBS.values(), ids=VERBS)
CALLS = [
    pytest.param(verb, method, verb.calls[: place + 1].count(method), id=f"{name}, {place} {method}")
    for name, verb in VERBS.items()
    for place, method in enumerate(verb.calls)
]


@verbs
def test_a_verb_asks_the_store_for_what_its_row_says(desk: Desk, verb: Verb) -> None:
    given = verb.prepare(desk)
    heard = Listening(desk.store)
    before = desk.events()
    verb.act(desk.broken(heard), desk, given)
    assert Counter(heard.called) == Counter(verb.calls)
    assert desk.events() - before == verb.left


@pytest.mark.parametrize("failure", WAYS)
@pytest.mark.parametrize(("verb", "method", "nth"), CALLS)
def test_a_store_that_fails_in_one_call_leaves_all_of_a_change_or_nothing_of_it(
    desk: Desk, verb: Verb, method: str, nth: int, failure: BaseException
) -> None:
    given = verb.prepare(desk)
    before, events = desk.everything(), desk.events()
    failing = Failing(desk.store, method, failure, nth)
    with pytest.raises(RAISED):
        verb.act(desk.broken(failing), desk, given)
    assert failing.calls >= nth
    happened = desk.events() - events
    if not happened:
        assert desk.everything() == before
        verb.act(desk.gate, desk, given)
        happened = desk.events() - events
    assert happened == verb.left
    _require_charged_once(desk)


@pytest.mark.parametrize("desk", ["memory", "file"], indirect=True)
@pytest.mark.parametrize("failure", WAYS)
@verbs
def test_a_change_that_was_accepted_and_then_failed_is_no_success(
    desk: Desk, verb: Verb, failure: BaseException
) -> None:
    """The store said yes and then could not keep it: nobody is told yes."""
    given = verb.prepare(desk)
    before, events = desk.everything(), desk.events()
    gate = desk.broken(Instead(desk.store, change=_failed(failure)))
    if verb.event == "expired":
        # Time waits for nobody: what cannot be written now is written when it is next looked for.
        verb.act(gate, desk, given)
    else:
        with pytest.raises(RAISED):
            verb.act(gate, desk, given)
    assert desk.everything() == before
    verb.act(desk.gate, desk, given)
    assert desk.events() - events == verb.left
    _require_charged_once(desk)


@pytest.mark.parametrize("failure", WAYS)
@pytest.mark.parametrize("stage", ["change", "changed"])
@pytest.mark.parametrize(
    "verb", [verb for verb in VERBS.values() if verb.event != "expired"], ids=lambda v: "".join(v.event)
)
def test_a_surprise_before_or_after_the_commit_is_no_success_and_happens_at_most_once(
    desk: Desk, verb: Verb, stage: str, failure: BaseException
) -> None:
    given = verb.prepare(desk)
    before, events = desk.everything(), desk.events()

    def hook(name: str) -> None:
        if name == stage:
            raise failure

    gate = Gate(desk.opened._replace(services=replace(desk.services, at_stage=hook)))
    with pytest.raises(RAISED):
        verb.act(gate, desk, given)
    happened = desk.events() - events
    assert happened == (Counter() if stage == "change" else verb.left)
    if stage == "change":
        assert desk.everything() == before
    _require_charged_once(desk)


def _require_charged_once(desk: Desk) -> None:
    """What waits is held, what was approved is used, what was refused is neither."""
    spent = desk.store.spent(desk.agent_id, desk.hands.now)
    rows = desk.store._all("SELECT state, cost FROM approvals WHERE kind = 'action'", ())
    assert spent.pending_cost == sum(cost for state, cost in rows if state == "pending")
    assert spent.open_approvals == sum(state == "pending" for state, _cost in rows)
    approved = sum(cost for state, cost in rows if state == "approved")
    # The one action that is permitted without a person costs a cent.
    decided = 10_000 * len(desk.store._all("SELECT 1 FROM activities WHERE decision = 'APPROVED'", ()))
    assert spent.cost_day == approved + decided
    total = desk.store.tally(desk.agent_id, None, None).cost
    assert total == approved + decided


@pytest.mark.parametrize("failure", WAYS)
@pytest.mark.parametrize("desk", ["memory", "file"], indirect=True)
def test_an_approval_without_its_signature_is_kept_and_its_signature_is_issued_later(
    desk: Desk, failure: BaseException
) -> None:
    """The attestation is made from the log whenever it is asked for, so that an approval never waits for one."""
    approval_id = _pending(desk)
    signer: Any = Failing(desk.services.signer, "attest", failure)
    gate = Gate(desk.opened._replace(services=replace(desk.services, signer=signer)))
    action_id = gate.approve(approval_id, "fine")["action_id"]
    with pytest.raises(type(failure)):
        gate.get_action(desk.agent_id, action_id)
    assert desk.gate.get_action(desk.agent_id, action_id).attestation is not None
    _require_charged_once(desk)


@pytest.mark.parametrize("way", ["rejected", "expired"])
def test_what_was_not_approved_has_no_attestation_and_nothing_to_execute(desk: Desk, way: str) -> None:
    answer = desk.ask()
    if way == "rejected":
        desk.gate.reject(answer.approval_id, "no")
    else:
        desk.hands.turn(86_401)
    action = desk.gate.get_action(desk.agent_id, answer.action_id)
    assert (action.decision, action.attestation, action.verified_query) == ("DENIED", None, None)
    with pytest.raises(GateError, match="not permitted"):
        desk.gate.log_execution(desk.agent_id, answer.action_id, True)


def _failed(failure: BaseException) -> Ticket[Any]:
    ticket: Ticket[Any] = Ticket()
    ticket.fail(failure)
    announce([ticket])
    return ticket
