"""A data directory with a past: decisions of every kind, people, executions, losses of trust, an erasure; and what a
hand that knows SQL can do to it."""

import hashlib
import json
import shutil
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

import qwed
from qwed.gate import Gate
from qwed.kernel.change import GATE, Actor
from qwed.kernel.people.organisations import add_key, add_organisation, revoke_key
from qwed.kernel.wiring import Opened
from qwed.ledger.keyring import Keyring, fresh_keyring
from qwed.ledger.merkle import Growth
from qwed.ledger.sequencer import HEAD_TYPE, head_from
from qwed.store.place import FILE_NAME
from qwed.waiting import in_thread
from qwed.witness.places import append
from tests.support.clock import HandClock

LETTER = {"type": "send_email", "parameters": {"to": "user@example.com", "body": "It has shipped"}}
ATTACK = {"type": "execute_code", "code": "import os\nos.system('rm -rf /')"}
GENEROUS: Any = {"trust_min_days": 0, "trust_min_actions": 0, "trust_max_denial_rate": 1.0}
DAY = 86_400


class History(NamedTuple):
    """Where it is, and how it was when it was left."""

    data: Path
    heads: Path
    """Two heads of each log, as a witness keeps them."""
    first: str
    second: str
    tokens: list[str]
    """Attestations and receipts that were given on the way."""

    def copy(self, to: Path) -> "History":
        """The same elsewhere."""
        shutil.copytree(self.data, to / "data")
        return self._replace(data=to / "data")


def made_in(place: Path) -> History:
    """A few hundred activities of two organisations."""
    hands = HandClock()
    data, heads = place / "data", place / "heads.jsonl"
    tokens: list[Any] = []
    with qwed.open(data, clock=hands.clock(), approval_ttl_seconds=60, **GENEROUS) as gate:
        owner = Actor(GATE, gate.organisation_id, "owner")
        made = in_thread(add_organisation("second", owner, gate.services), 30)
        other = Gate(Opened(gate.services, made.organisation_id, None))
        for each in (gate, other):
            _decisions(each, hands, tokens)
        _save(gate, heads)
        _people(gate, hands)
        _house(gate)
        gate.erase("alice")
        for each in (gate, other):
            _after(each)
        _save(gate, heads)
    return History(data, heads, gate.organisation_id, made.organisation_id, tokens)


def _save(gate: Gate, heads: Path) -> None:
    for signature in gate.services.store.latest_heads():
        append(heads, msgspec.json.encode(head_from(signature)) + b"\n")


def _decisions(gate: Gate, hands: HandClock, tokens: list[Any]) -> None:
    trusted = gate.register_agent(name="sums", principal_id="ops", type="trusted").agent_id
    for step in range(1, 51):
        who = {"subject": ("alice", "bob", "søren")[step % 3]} if step % 4 else {}
        answer = gate.verify_action(
            trusted,
            {"type": "calculate", "query": f"{step} + 1 = {step + (1 if step % 5 else 2)}"},
            {"conversation_id": "c", "step_number": step, **who},
            {"require_attestation": step % 2 == 0},
        )
        hands.turn(1.37)
        if answer.attestation is not None:
            tokens.append(answer.attestation)
        if answer.decision == "APPROVED" and step % 3 == 0:
            gate.log_execution(trusted, answer.action_id, step % 2 == 0, {"step": step})
    rogue = gate.register_agent(name="rogue", principal_id="ops", type="trusted").agent_id
    for step in range(1, 4):
        gate.verify_action(rogue, ATTACK, {"conversation_id": "r", "step_number": step})


def _people(gate: Gate, hands: HandClock) -> None:
    careful = gate.register_agent(name="letters", principal_id="søren").agent_id
    for number, settle in enumerate((gate.approve, gate.reject, gate.approve, None, None)):
        asked = gate.verify_action(careful, LETTER, {"conversation_id": f"letter {number}", "step_number": 1})
        if settle is not None:
            settle(asked.approval_id, reason="as the customer wishes")
        if settle == gate.approve:
            gate.log_execution(careful, asked.action_id, number == 0)
    hands.turn(DAY)
    gate.verify_action(careful, LETTER, {"conversation_id": "a day later", "step_number": 1})
    gate.suspend_agent(careful, "look first")
    gate.reactivate_agent(careful, "found it")
    gate.file_complaint(gate.register_agent(name="rude", principal_id="bob").agent_id, "it was rude")
    gate.reduce_trust(careful, 0, "until it is clear")
    for level, settle in ((1, gate.approve), (2, gate.reject)):
        settle(gate.request_trust_change(careful, level, "it is").approval_id, reason="as you say")


def _house(gate: Gate) -> None:
    owner, services = Actor(GATE, gate.organisation_id, "owner"), gate.services
    gate.suspend_all("a drill")
    gate.reactivate_all("over")
    second = in_thread(add_key("second", "approver", owner, services), 30)
    third = in_thread(add_key("third", "member", owner, services), 30)
    in_thread(revoke_key(third.key.key_id, owner, services), 30)
    assert second.key.revoked_at is None
    agent = next(agent.agent_id for agent in gate.list_agents() if agent.name == "sums")
    attested = next(each for each in gate.get_agent_activity(agent, 100) if each.attestation_id is not None)
    gate.revoke_attestation(attested.attestation_id, "a drill")
    gate.rotate_signing_key("a drill")


def _after(gate: Gate) -> None:
    """What comes after an erasure, about the same subject too."""
    agent = gate.register_agent(name="later", principal_id="alice", type="trusted").agent_id
    for step in range(1, 6):
        gate.verify_action(
            agent, {"type": "calculate", "query": f"{step} = {step}"}, {"conversation_id": "l", "step_number": step}
        )


# A hand that knows SQL


@contextmanager
def hand(data: Path) -> Iterator[sqlite3.Connection]:
    with closing(sqlite3.connect(data / FILE_NAME)) as connection, connection:
        yield connection


def tamper(data: Path, *statements: str) -> None:
    """Run the statements; each changes something."""
    with hand(data) as connection:
        for statement in statements:
            assert connection.execute(statement).rowcount > 0, statement


def ask(data: Path, statement: str, *values: Any) -> Any:
    """The first value of the first row."""
    with hand(data) as connection:
        return connection.execute(statement, values).fetchone()[0]


def rebuilt(data: Path, log_id: str) -> None:
    """Make every kept hash of a log fit its leaves; the heads stay as they are."""
    with hand(data) as connection:
        growth = Growth(0, [])
        rows = connection.execute(
            "SELECT sequence, leaf FROM activities WHERE organisation_id = ? ORDER BY log_index", (log_id,)
        ).fetchall()
        for sequence, leaf in rows:
            nodes = b"".join(growth.add(hashlib.sha256(b"\x00" + leaf.encode()).digest())).hex()
            connection.execute("UPDATE activities SET nodes = ? WHERE sequence = ?", (nodes, sequence))


def resigned(data: Path, log_id: str, keyring: Keyring | None = None) -> Keyring:
    """Sign every head of a log anew for the leaves there are now, with another key, which takes the old one's place."""
    keyring = keyring or fresh_keyring()
    rebuilt(data, log_id)
    with hand(data) as connection:
        leaves = connection.execute(
            "SELECT leaf FROM activities WHERE organisation_id = ? ORDER BY log_index", (log_id,)
        ).fetchall()
        heads = dict(connection.execute("SELECT size, signature FROM heads WHERE organisation_id = ?", (log_id,)))
        growth = Growth(0, [])
        for (leaf,) in leaves:
            growth.add(hashlib.sha256(b"\x00" + leaf.encode()).digest())
            if growth.size in heads:
                signature = _signed(log_id, growth, keyring)
                where = (signature, log_id, growth.size)
                connection.execute("UPDATE heads SET signature = ? WHERE organisation_id = ? AND size = ?", where)
    file = data / "signing.jwks"
    file.write_text(json.dumps({"issuer": keyring.issuer, "keys": keyring.public_jwks()}))
    return keyring


def _signed(log_id: str, growth: Growth, keyring: Keyring) -> str:
    members = {"log_id": log_id, "root": growth.root().hex(), "size": growth.size, "time": "2026-01-01T00:00:00Z"}
    return keyring.current.sign(HEAD_TYPE, json.dumps(members, separators=(",", ":")).encode())


Hand = Callable[[Path], None]
