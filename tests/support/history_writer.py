"""Writer of long histories directly into a store, such as a busy month of one agent."""

from collections.abc import Iterator
from typing import Any

from qwed.domain.agent import Agent
from qwed.domain.budget import NO_COST
from qwed.domain.change_parts import Conflict
from qwed.domain.conversation import ConversationStep
from qwed.domain.snapshot import Snapshot, SnapshotKeys
from qwed.domain.write_set import Activity, DecisionEffects, Reservation, WriteSet
from qwed.gate.gate import Gate
from qwed.kernel.audit_change import build_change
from qwed.ledger import leaf
from qwed.ledger.subject_encryption import SubjectKey
from qwed.model import Decision, Event
from qwed.model.ids import timed_id

_KINDS = (Decision.APPROVED,) * 7 + (Decision.DENIED, Decision.APPROVED, Decision.DENIED)
_PAUSE = 1_000


def write_history(gate: Gate, agent_id: str, count: int, *, seconds: float = 1.0, begin: float = 0.0) -> None:
    """Write `count` activities of an agent, one every `seconds`: decisions, and the execution of every tenth."""
    agent = gate.services.store.find_agent(agent_id)
    assert agent is not None
    for number, at in enumerate(_moments(gate, count, seconds, begin)):
        if number % 10 == 8:
            _execute(gate, agent, at)
        else:
            _decide(gate, agent, number, at)
        if number % _PAUSE == 0:
            gate.services.store.durable().wait_result(60)
    gate.services.store.durable().wait_result(60)


def _moments(gate: Gate, count: int, seconds: float, begin: float) -> Iterator[float]:
    first = begin or gate.services.clock.now() - count * seconds
    return (first + number * seconds for number in range(count))


def _decide(gate: Gate, agent: Agent, number: int, at: float) -> None:
    store, decision = gate.services.store, _KINDS[number % 10]
    key = gate.services.vault.key_of_agent(agent)
    activity = _activity(key, agent, number, decision, at)
    reservation: Reservation | None = None
    if decision.commits:
        step, name = ConversationStep(1, f"{number}"), f"history {number}"
        reservation = Reservation(agent.agent_id, name, step, NO_COST, at)
        loaded = store.load(SnapshotKeys(agent.agent_id, conversation_id=name, now=at))
        snapshot = loaded if isinstance(loaded, Snapshot) else loaded.wait_result(60)
        assert store.reserve(reservation, snapshot) is None
    effects = DecisionEffects(agent=agent, decision=decision, reservation=reservation)
    committing = store.commit(
        WriteSet(organisation_id=agent.organisation_id, agent_id=agent.agent_id, activity=activity, effects=effects)
    )
    # A conflict is known at once where one process owns the database.
    assert not (committing.done and isinstance(committing.result(), Conflict))


def _activity(key: SubjectKey, agent: Agent, number: int, decision: Decision, at: float) -> Activity:
    name = timed_id("act", at)
    text = f'{{"action":{{"query":"SELECT {number} FROM orders","type":"execute_sql"}},"conversation_id":"c{number}"}}'
    permitted = decision.permits
    kept = leaf.Leaf(
        v=leaf.VERSION,
        activity_id=name,
        agent_id=agent.agent_id,
        by="gate",
        commitment=key.commitment(name, text),
        action_type="execute_sql",
        step_number=1,
        decision=decision,
        engine="sql",
        status="VERIFIED",
        risk_level="low" if permitted else "critical",
        error=None if permitted else "QWED-AGENT-TRUST-001",
        cost_micros=10_000 if permitted else 0,
        tokens=100 if permitted else 0,
        attestation_id=timed_id("att", at) if permitted else None,
        time_ms=int(at * 1000),
        latency_us=400,
    )
    sealed, line = key.seal(name, text), leaf.encode(kept).decode()
    return Activity(name, decision, at, kept.cost_micros, line, sealed, "", kept.attestation_id, key.subject_id)


def _execute(gate: Gate, agent: Agent, at: float) -> None:
    organisation = agent.organisation_id
    known: dict[str, Any] = {"agent_id": agent.agent_id, "about": timed_id("act", at), "success": True}
    gate.services.store.commit(build_change(Event.EXECUTED, "gate", organisation, at, gate.services, **known))
