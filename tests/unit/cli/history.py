"""A data directory with a history (decisions, approvals, executions, trust changes, an erasure) and ways to tamper with
it."""

import json
import shutil
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

import qwed
from qwed.domain.policy_set import PolicyDocument
from qwed.futures import run_in_thread
from qwed.gate import Gate
from qwed.kernel.admin.organisations import add_key, add_organisation, revoke_key
from qwed.kernel.admin.policy_sets import replace_policies
from qwed.kernel.audit_change import GATE, Actor
from qwed.kernel.bootstrap import OpenedServices
from qwed.ledger.keyring import Keyring, fresh_keyring
from qwed.ledger.merkle import MerkleFrontier
from qwed.ledger.sequencer import HEAD_TYPE, head_from
from qwed.store.data_directory import FILE_NAME
from qwed.witness.publishers import append_lines
from tests.support.manual_clock import ManualClock

EMAIL = {"type": "send_email", "parameters": {"to": "user@example.com", "body": "It has shipped"}}
ATTACK = {"type": "execute_code", "code": "import os\nos.system('rm -rf /')"}
GENEROUS: Any = {"trust_min_days": 0, "trust_min_actions": 0, "trust_max_denial_rate": 1.0}
DAY = 86_400
_COUNT_LETTERS = """\
policy: letters
facts: 1
applies_to:
  tools: [send_email]
rules:
  - id: few
    when: usage.count("send_email", duration("24h")) < 2 && usage.org.count("send_email", duration("1h")) < 2
    then: allow
  - id: many
    when: usage.count("send_email", duration("24h")) >= 2
    then: ask
"""


class History(NamedTuple):
    """A data directory and the heads, organisations and tokens saved from it."""

    data: Path
    heads: Path
    """File with two heads of each log, as a witness writes it."""
    first: str
    second: str
    tokens: list[str]
    """Attestations and receipts issued on the way."""

    def copy(self, to: Path) -> "History":
        """Return a copy in another directory."""
        shutil.copytree(self.data, to / "data")
        return self._replace(data=to / "data")


def create_history(directory: Path) -> History:
    """Create a few hundred activities of two organisations."""
    manual_clock = ManualClock()
    data, heads = directory / "data", directory / "heads.jsonl"
    tokens: list[Any] = []
    with qwed.open(data, clock=manual_clock.clock(), approval_ttl_seconds=60, **GENEROUS) as gate:
        owner = Actor(GATE, gate.organisation_id, "owner")
        added = run_in_thread(add_organisation("second", owner, gate.services), 30)
        other = Gate(OpenedServices(gate.services, added.organisation_id, None))
        for organisation in (gate, other):
            _decisions(organisation, manual_clock, tokens)
        _save(gate, heads)
        _approvals_and_changes(gate, manual_clock)
        _administration(gate)
        gate.erase("alice")
        for organisation in (gate, other):
            _decisions_after_erasure(organisation)
        _save(gate, heads)
    return History(data, heads, gate.organisation_id, added.organisation_id, tokens)


def _save(gate: Gate, heads: Path) -> None:
    for signature in gate.services.store.latest_heads():
        append_lines(heads, msgspec.json.encode(head_from(signature)) + b"\n")


def _decisions(gate: Gate, manual_clock: ManualClock, tokens: list[Any]) -> None:
    trusted = gate.register_agent(name="sums", principal_id="ops", type="trusted").agent_id
    for step in range(1, 51):
        who = {"subject": ("alice", "bob", "søren")[step % 3]} if step % 4 else {}
        answer = gate.verify_action(
            trusted,
            {"type": "calculate", "query": f"{step} + 1 = {step + (1 if step % 5 else 2)}"},
            {"conversation_id": "c", "step_number": step, **who},
            {"require_attestation": step % 2 == 0},
        )
        manual_clock.advance(1.37)
        if answer.attestation is not None:
            tokens.append(answer.attestation)
        if answer.decision == "APPROVED" and step % 3 == 0:
            gate.log_execution(trusted, answer.action_id, step % 2 == 0, {"step": step})
    rogue = gate.register_agent(name="rogue", principal_id="ops", type="trusted").agent_id
    for step in range(1, 4):
        gate.verify_action(rogue, ATTACK, {"conversation_id": "r", "step_number": step})


def _approvals_and_changes(gate: Gate, manual_clock: ManualClock) -> None:
    careful = gate.register_agent(name="letters", principal_id="søren").agent_id
    for number, settle in enumerate((gate.approve, gate.reject, gate.approve, None, None)):
        answer = gate.verify_action(careful, EMAIL, {"conversation_id": f"letter {number}", "step_number": 1})
        if settle is not None:
            settle(answer.approval_id, reason="as the customer wishes")
        if settle == gate.approve:
            gate.log_execution(careful, answer.action_id, number == 0)
    manual_clock.advance(DAY)
    gate.verify_action(careful, EMAIL, {"conversation_id": "a day later", "step_number": 1})
    gate.suspend_agent(careful, "look first")
    gate.reactivate_agent(careful, "found it")
    gate.file_complaint(gate.register_agent(name="rude", principal_id="bob").agent_id, "it was rude")
    gate.reduce_trust(careful, 0, "until it is clear")
    for level, settle in ((1, gate.approve), (2, gate.reject)):
        settle(gate.request_trust_change(careful, level, "it is").approval_id, reason="as you say")


def _count_letters(gate: Gate, owner: Actor) -> None:
    """Commit calls that a policy counts: two that may run, and one that waits for a person."""
    run_in_thread(replace_policies([PolicyDocument("letters", _COUNT_LETTERS)], None, owner, gate.services), 30)
    agent = gate.register_agent(name="counted", principal_id="bob", trust_level=2).agent_id
    for number, decision in enumerate(("APPROVED", "APPROVED", "PENDING")):
        place = {"conversation_id": f"counted letter {number}", "step_number": 1}
        assert gate.verify_action(agent, EMAIL, place).decision == decision


def _administration(gate: Gate) -> None:
    owner, services = Actor(GATE, gate.organisation_id, "owner"), gate.services
    _count_letters(gate, owner)
    gate.suspend_all("a drill")
    gate.reactivate_all("over")
    second = run_in_thread(add_key("second", "approver", owner, services), 30)
    third = run_in_thread(add_key("third", "member", owner, services), 30)
    run_in_thread(revoke_key(third.key.key_id, owner, services), 30)
    assert second.key.revoked_at is None
    agent = next(agent.agent_id for agent in gate.list_agents() if agent.name == "sums")
    attested = next(activity for activity in gate.get_agent_activity(agent, 100) if activity.attestation_id is not None)
    gate.revoke_attestation(attested.attestation_id, "a drill")
    gate.rotate_signing_key("a drill")
    for documents in ([PolicyDocument("mail", "policy: mail\n")], []):
        run_in_thread(replace_policies(documents, None, owner, services), 30)


def _decisions_after_erasure(gate: Gate) -> None:
    """Decide after the erasure, also about the same subject."""
    agent = gate.register_agent(name="later", principal_id="alice", type="trusted").agent_id
    for step in range(1, 6):
        gate.verify_action(
            agent, {"type": "calculate", "query": f"{step} = {step}"}, {"conversation_id": "l", "step_number": step}
        )


# Tampering by SQL


@contextmanager
def open_database(data: Path) -> Iterator[sqlite3.Connection]:
    with closing(sqlite3.connect(data / FILE_NAME)) as connection, connection:
        yield connection


def tamper(data: Path, *statements: str) -> None:
    """Run the statements and assert that each changes something."""
    with open_database(data) as connection:
        for statement in statements:
            assert connection.execute(statement).rowcount > 0, statement


def query_value(data: Path, statement: str, *values: Any) -> Any:
    """Return the first value of the first row."""
    with open_database(data) as connection:
        return connection.execute(statement, values).fetchone()[0]


def rebuild_hashes(data: Path, log_id: str) -> None:
    """Recompute every stored hash of a log from its leaves; the heads stay unchanged."""
    with open_database(data) as connection:
        growth = MerkleFrontier(0, [])
        rows = connection.execute(
            "SELECT sequence, leaf FROM activities WHERE organisation_id = ? ORDER BY log_index", (log_id,)
        ).fetchall()
        for sequence, leaf in rows:
            nodes = growth.add(leaf.encode()).hex()
            connection.execute("UPDATE activities SET nodes = ? WHERE sequence = ?", (nodes, sequence))


def resign_heads(data: Path, log_id: str, keyring: Keyring | None = None) -> Keyring:
    """Sign every head of a log again for the present leaves, with a key that replaces the old one."""
    keyring = keyring or fresh_keyring()
    rebuild_hashes(data, log_id)
    with open_database(data) as connection:
        leaves = connection.execute(
            "SELECT leaf FROM activities WHERE organisation_id = ? ORDER BY log_index", (log_id,)
        ).fetchall()
        heads = dict(connection.execute("SELECT size, signature FROM heads WHERE organisation_id = ?", (log_id,)))
        growth = MerkleFrontier(0, [])
        for (leaf,) in leaves:
            growth.add(leaf.encode())
            if growth.size in heads:
                signature = _sign_head(log_id, growth, keyring)
                where = (signature, log_id, growth.size)
                connection.execute("UPDATE heads SET signature = ? WHERE organisation_id = ? AND size = ?", where)
    file = data / "signing.jwks"
    file.write_text(json.dumps({"issuer": keyring.issuer, "keys": keyring.public_jwks()}))
    return keyring


def _sign_head(log_id: str, growth: MerkleFrontier, keyring: Keyring) -> str:
    members = {"log_id": log_id, "root": growth.root().hex(), "size": growth.size, "time": "2026-01-01T00:00:00Z"}
    return keyring.current.sign(HEAD_TYPE, json.dumps(members, separators=(",", ":")).encode())


Tamper = Callable[[Path], None]
