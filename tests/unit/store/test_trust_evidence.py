"""Trust evidence at the current level: counted with each decision, and restarted with every level (spec 8.2)."""

import itertools
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace as with_fields

from qwed.domain.agent import AgentStatus
from qwed.domain.behaviour import NO_EVIDENCE, BehaviourFlag, TrustEvidence
from qwed.domain.change_parts import AgentChanged, AgentUnchanged, ApprovalRequest, ElevationRequested
from qwed.domain.write_set import Committed, Reservation
from qwed.gate import open_gate
from qwed.model import Decision, Trust
from qwed.store.protocol import StoreError
from tests.support.data_directory_check import TRUST_EVENTS, DataDirectoryCheck
from tests.support.manual_clock import NOON, ManualClock
from tests.support.stores import CENT, ORGANISATION, StoreFixture, agent_of


def _agent(store_fixture: StoreFixture) -> Any:
    return store_fixture.store.find_agent("agent_1")


def _merit(store_fixture: StoreFixture) -> Any:
    return store_fixture.store.trust_evidence("agent_1")


def _denied(store_fixture: StoreFixture, mark: BehaviourFlag = BehaviourFlag.DENIED, times: int = 1) -> None:
    for _ in range(times):
        store_fixture.settle(_agent(store_fixture), None, Decision.DENIED, mark=mark)


def _approved(store_fixture: StoreFixture, step: int, *, attested: bool = False) -> None:
    reservation = store_fixture.reserve(_agent(store_fixture), step)
    assert isinstance(reservation, Reservation)
    assert isinstance(
        store_fixture.settle(_agent(store_fixture), reservation, mark=BehaviourFlag.CLEAN, attested=attested),
        Committed,
    )


def _asked(store_fixture: StoreFixture, step: int) -> ApprovalRequest:
    """Commit a pending action, counted as the kernel counts it."""
    now = store_fixture.manual_clock.now
    approval = ApprovalRequest(f"apr_{step}", CENT.cost, CENT.tokens, 0, now, now + 60, "key_9")
    reservation = store_fixture.reserve(_agent(store_fixture), step)
    assert isinstance(reservation, Reservation)
    store_fixture.settle(
        _agent(store_fixture), reservation, Decision.PENDING, CENT, approval=approval, mark=BehaviourFlag.CLEAN
    )
    return approval


def test_an_agent_nobody_has_heard_of_has_none(store_fixture: StoreFixture) -> None:
    assert _merit(store_fixture) == store_fixture.store.trust_evidence("agent_9") == NO_EVIDENCE


def test_decisions_are_counted_and_live_through_a_restart(disk: StoreFixture) -> None:
    _approved(disk, 1, attested=True)
    _approved(disk, 2)
    _denied(disk)
    _denied(disk, BehaviourFlag.NONE)
    _denied(disk, BehaviourFlag.EXCEEDED)
    assert _merit(disk) == TrustEvidence(0.0, 3, 1, 1)
    disk.reopened()
    assert _merit(disk) == TrustEvidence(0.0, 3, 1, 1)


@pytest.mark.parametrize(
    ("state", "after"),
    [
        ("approved", TrustEvidence(0.0, 1, 0, 1)),
        ("rejected", TrustEvidence(0.0, 1, 1, 0)),
        ("expired", TrustEvidence(0.0, 1, 0, 0)),
    ],
)
def test_what_waits_is_one_action_and_counts_once_more_when_a_person_settles_it(
    store_fixture: StoreFixture, state: str, after: TrustEvidence
) -> None:
    approval = _asked(store_fixture, 1)
    assert _merit(store_fixture) == TrustEvidence(0.0, 1, 0, 0)
    store_fixture.change(store_fixture.resolved(approval, state))
    assert _merit(store_fixture) == after
    store_fixture.change(store_fixture.resolved(approval, state))
    assert _merit(store_fixture) == after, "settled once"


@pytest.mark.parametrize("to", [Trust.UNTRUSTED, Trust.AUTONOMOUS, Trust.TRUSTED])
def test_a_new_level_begins_a_new_record_up_or_down(disk: StoreFixture, to: Trust) -> None:
    _approved(disk, 1, attested=True)
    _denied(disk)
    disk.manual_clock.advance(100)
    disk.change(AgentChanged(_agent(disk), replace(_agent(disk), trust=to)))
    assert _merit(disk) == TrustEvidence(level_since=NOON + 100)
    _denied(disk)
    assert _merit(disk) == TrustEvidence(NOON + 100, 1, 1, 0)
    disk.reopened()
    assert _merit(disk) == TrustEvidence(NOON + 100, 1, 1, 0)


def test_a_level_an_agent_that_never_acted_is_given_begins_its_record(disk: StoreFixture) -> None:
    disk.change(AgentChanged(_agent(disk), replace(_agent(disk), trust=Trust.TRUSTED)))
    disk.reopened()
    assert _merit(disk) == TrustEvidence(level_since=NOON)
    assert disk.store.activity_summary("agent_1", None, None).total_actions == 0


def test_what_leaves_the_level_as_it_is_leaves_the_record_as_it_is(store_fixture: StoreFixture) -> None:
    _denied(store_fixture)
    suspended = replace(_agent(store_fixture), status=AgentStatus.SUSPENDED)
    store_fixture.change(AgentChanged(_agent(store_fixture), suspended))
    store_fixture.change(
        AgentChanged(suspended, replace(suspended, status=AgentStatus.ACTIVE, token_prefix="qwed_agent_new"))
    )
    store_fixture.change(AgentUnchanged(_agent(store_fixture)))
    assert _merit(store_fixture) == TrustEvidence(0.0, 1, 1, 0)


def test_a_decision_that_costs_trust_ends_the_record_it_stood_in(disk: StoreFixture) -> None:
    _approved(disk, 1)
    disk.manual_clock.advance(7)
    _denied(disk, BehaviourFlag.VIOLATION)
    assert (_agent(disk).trust, _merit(disk)) == (Trust.UNTRUSTED, TrustEvidence(level_since=NOON + 7))
    disk.manual_clock.advance(1)
    _denied(disk, BehaviourFlag.VIOLATION)
    assert _merit(disk) == TrustEvidence(NOON + 7, 1, 1, 0), "with no level left to lose the record goes on"
    disk.reopened()
    assert _merit(disk) == TrustEvidence(NOON + 7, 1, 1, 0)


def test_an_elevation_that_is_asked_for_or_refused_leaves_the_record_as_it_is(store_fixture: StoreFixture) -> None:
    _denied(store_fixture)
    wish = ApprovalRequest("apr_up", 0, 0, 0, 1.0, 2.0, "key_1", "trust_elevation", "{}")
    store_fixture.change(ElevationRequested(ORGANISATION, "agent_1", "act_up", wish), activity_id="act_up")
    store_fixture.change(store_fixture.resolved(wish, "rejected"))
    assert _merit(store_fixture) == TrustEvidence(0.0, 1, 1, 0)


def test_an_elevation_that_is_granted_begins_a_new_record(store_fixture: StoreFixture) -> None:
    _approved(store_fixture, 1, attested=True)
    wish = ApprovalRequest("apr_up", 0, 0, 0, 1.0, 2.0, "key_1", "trust_elevation", "{}")
    store_fixture.change(ElevationRequested(ORGANISATION, "agent_1", "act_up", wish), activity_id="act_up")
    raised = AgentChanged(_agent(store_fixture), replace(_agent(store_fixture), trust=Trust.AUTONOMOUS))
    store_fixture.change(store_fixture.resolved(wish), raised)
    assert _merit(store_fixture) == TrustEvidence(level_since=NOON)


def test_agents_earn_for_themselves_alone(store_fixture: StoreFixture) -> None:
    store_fixture.register(agent_of("agent_2"))
    _denied(store_fixture, times=3)
    assert store_fixture.store.trust_evidence("agent_2") == NO_EVIDENCE
    other = store_fixture.store.find_agent("agent_2")
    store_fixture.change(AgentChanged(other, replace(other, trust=Trust.TRUSTED)), agent_id="agent_2")
    assert (_merit(store_fixture), store_fixture.store.trust_evidence("agent_2")) == (
        TrustEvidence(0.0, 3, 3, 0),
        TrustEvidence(level_since=NOON),
    )


def test_what_could_not_be_kept_has_not_counted(disk: StoreFixture) -> None:
    approval = _asked(disk, 1)
    before = _merit(disk)
    raised = AgentChanged(_agent(disk), replace(_agent(disk), trust=Trust.TRUSTED))
    with disk.broken():
        for part in (disk.resolved(approval, "rejected"), raised):
            with pytest.raises(StoreError):
                disk.change(part)
        with pytest.raises(StoreError):
            _denied(disk)
    assert _merit(disk) == before
    disk.change(disk.resolved(approval, "rejected"))
    assert _merit(disk) == with_fields(before, denied=1)


def test_what_is_held_is_held_through_a_new_level(store_fixture: StoreFixture) -> None:
    reservation = store_fixture.reserve(_agent(store_fixture), 1, charge=CENT)
    store_fixture.change(AgentChanged(_agent(store_fixture), replace(_agent(store_fixture), trust=Trust.TRUSTED)))
    snapshot = store_fixture.load()
    assert (snapshot.reserved, snapshot.usage.evidence) == (CENT, TrustEvidence(level_since=NOON))
    store_fixture.store.release(reservation)


# Agreement with the log

SUM = {"type": "calculate", "query": "2+2"}
ATTACK = {"type": "execute_sql", "query": "SELECT * FROM users WHERE id = 1 OR 1=1; DROP TABLE users --"}
TOO_RISKY = {"type": "execute_sql", "query": "DROP TABLE users"}
MAIL = {"type": "send_email", "target": "operations", "parameters": {"body": "hello"}}


def _live(directory: Path, manual_clock: ManualClock) -> str:
    """Run everything that can change the evidence, at several levels; return the agent."""
    with open_gate(directory, clock=manual_clock.clock(), trust_min_days=0, trust_min_actions=0) as gate:
        agent_id: str = gate.register_agent(name="a", principal_id="p")["agent_id"]
        steps = itertools.count(1)

        def ask(action: dict[str, Any], **options: Any) -> Any:
            manual_clock.advance(1)
            context = {"conversation_id": f"c{next(steps)}", "step_number": 1}
            return gate.verify_action(agent_id, action, context, options or None)

        def level() -> None:
            assert ask(SUM, require_attestation=True).attestation is not None
            assert ask(TOO_RISKY).decision in ("DENIED", "PENDING")
            gate.reject(ask(MAIL).approval_id, "no")
            gate.approve(ask(MAIL).approval_id, "yes")
            assert ask(MAIL).decision == "PENDING"

        level()
        manual_clock.advance(86_401)  # one runs out
        gate.get_agent_budget(agent_id)
        gate.services.store.durable().wait_result(30)
        DataDirectoryCheck(directory).require_consistent()
        refused = gate.services.store.trust_evidence(agent_id)
        assert (refused.actions, refused.denied, refused.attestations) == (5, 2, 2)
        gate.reduce_trust(agent_id, 0)
        assert gate.services.store.trust_evidence(agent_id) == TrustEvidence(level_since=manual_clock.now)
        for _ in range(20):
            assert ask(SUM).decision == "PENDING"
        gate.approve(gate.request_trust_change(agent_id, 1)["approval_id"], "earned")
        level()
        assert ask(ATTACK).decision == "DENIED"
        gate.restore_trust(agent_id, 1, "it was a test")
        ask(SUM)
    return agent_id


@pytest.fixture(scope="module")
def lived(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, Path]:
    """Agent and its data directory, closed."""
    directory = tmp_path_factory.mktemp("merit") / "data"
    return _live(directory, ManualClock()), directory


def test_what_speaks_for_an_agent_is_what_the_log_says_of_it(lived: tuple[str, Path]) -> None:
    agent_id, directory = lived
    books = DataDirectoryCheck(directory)
    books.require_consistent()
    assert {one.event for one in books.events(*TRUST_EVENTS)} == set(TRUST_EVENTS)
    stored = books.usage[agent_id]
    assert (stored["actions"], stored["denied"], stored["attestations"]) == (1, 0, 0), "since the attack"


@pytest.mark.parametrize("column", ["level_since", "actions", "denied", "attestations"])
def test_a_record_that_says_something_else_is_noticed(lived: tuple[str, Path], column: str) -> None:
    agent_id, directory = lived
    books = DataDirectoryCheck(directory)
    books.usage[agent_id][column] += 1
    with pytest.raises(AssertionError, match=column):
        books.require_consistent()
