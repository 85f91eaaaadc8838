"""Manipulated tables lead neither to a valid check nor to a new signature."""

import json
import sqlite3
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

import qwed
from qwed.gate import Gate
from qwed.gate.gate_result import GateError
from qwed.kernel.audit.attestation_lookup import AttestationView
from qwed.ledger.keyring import fresh_keyring
from qwed.store.protocol import StoreError
from tests.support.manual_clock import NOON, ManualClock

SUM = {"type": "calculate", "query": "2+2"}


class Scene(NamedTuple):
    """A gate on a directory, and one attested action among others."""

    gate: Gate
    data: Path
    agent_id: str
    action_id: str
    token: str
    manual_clock: ManualClock

    @property
    def name(self) -> str:
        name: str = self.gate.get_action(self.agent_id, self.action_id).attestation_id
        return name

    def write(self, statement: str, **values: Any) -> None:
        """Change the database file directly."""
        with sqlite3.connect(self.data / "qwed.db") as database:
            assert database.execute(statement, values).rowcount >= 1
        database.close()


@pytest.fixture
def scene(tmp_path: Path) -> Iterator[Scene]:
    manual_clock = ManualClock()
    with qwed.open(tmp_path / "data", clock=manual_clock.clock()) as gate:
        agent_id = gate.register_agent(name="a", principal_id="p").agent_id
        for step in (1, 2, 3):
            context = {"conversation_id": "c", "step_number": step}
            answer = gate.verify_action(agent_id, {**SUM, "target": str(step)}, context, {"require_attestation": True})
        yield Scene(gate, tmp_path / "data", agent_id, answer.action_id, answer.attestation, manual_clock)


def _head(scene: Scene, **changed: Any) -> str:
    """Return a well-formed head that is not signed by us."""
    signature = scene.gate.services.store.latest_head(scene.gate.organisation_id)
    assert signature is not None
    members = {"log_id": scene.gate.organisation_id, "root": "0" * 64, "size": 4, "time": "2026-01-01T00:00:00Z"}
    return fresh_keyring().current.sign("qwed-head+jwt", json.dumps(members | changed, separators=(",", ":")).encode())


_OWN = "WHERE attestation_id = :name"
_HEADS = "UPDATE heads SET signature = :head"
TAMPERED = {
    "another decision": f"UPDATE activities SET leaf = replace(leaf, 'APPROVED', 'CORRECTED') {_OWN}",
    "another agent": f"UPDATE activities SET leaf = replace(leaf, '\"agent_', '\"agent_0') {_OWN}",
    "what no claim says": f"UPDATE activities SET leaf = replace(leaf, '10000', '10') {_OWN}",
    "another leaf of its own": (
        f"UPDATE activities SET leaf = (SELECT leaf FROM activities WHERE log_index = 2) {_OWN}"
    ),
    "no leaf": f"UPDATE activities SET leaf = 'nothing' {_OWN}",
    "another content": (
        f"UPDATE activities SET payload = substr(payload, 1, 40) || 'AAAA' || substr(payload, 45) {_OWN}"
    ),
    "the content of another": (
        f"UPDATE activities SET payload = (SELECT payload FROM activities WHERE log_index = 2) {_OWN}"
    ),
    "other hashes before it": "UPDATE activities SET nodes = upper(substr(nodes, 2)) || '0' WHERE log_index < 3",
    "no hashes before it": "UPDATE activities SET nodes = '' WHERE log_index < 3",
    "another place": f"UPDATE activities SET log_index = 99 {_OWN}",
    "no heads": "DELETE FROM heads WHERE :name != ''",
    "no head": f"{_HEADS[:-5]}'nothing' WHERE :name != ''",
    "a head of nobody": f"{_HEADS} WHERE :name != ''",
    "gone": f"DELETE FROM activities {_OWN}",
}


@pytest.mark.parametrize("case", TAMPERED)
def test_a_table_that_was_written_into_is_found_and_nothing_is_signed_from_it(scene: Scene, case: str) -> None:
    name, gate = scene.name, scene.gate
    assert gate.verify_attestation(scene.token).valid
    values = {"name": name} | ({"head": _head(scene)} if ":head" in TAMPERED[case] else {})
    scene.write(TAMPERED[case], **values)
    checked = gate.verify_attestation(scene.token)
    assert not checked.valid
    assert checked.error["code"] == "QWED-SEC-003", checked.error
    with pytest.raises(GateError) as refused:
        gate.get_attestation(name)
    assert refused.value.code in ("QWED-SEC-003", "QWED-REQ-007")
    assert _signed_again(scene) is None


def _signed_again(scene: Scene) -> str | None:
    """Return the token that the action itself still shows, or None if it is refused."""
    try:
        token: str | None = scene.gate.get_action(scene.agent_id, scene.action_id).attestation
    except (GateError, StoreError, ValueError):
        return None
    return token


def test_what_was_revoked_in_the_tables_alone_says_no_more_than_that(scene: Scene) -> None:
    name = scene.name
    scene.write("INSERT INTO revocations VALUES (:name, 'org_1', 'act_1', 0)", name=name)
    view = scene.gate.get_attestation(name)
    assert (view.attestation, view.revoked["by"], view.revoked["reason"]) == (None, "qwed", None)


def test_a_token_holds_until_its_time_is_over(scene: Scene) -> None:
    gate = scene.gate
    scene.manual_clock.advance(86_399)
    assert gate.verify_attestation(scene.token).valid
    scene.manual_clock.advance(1)
    checked = gate.verify_attestation(scene.token)
    assert (checked.valid, checked.error["code"]) == (False, "QWED-ATT-004")
    assert checked.claims["iat"] == NOON
    action = gate.log_execution(scene.agent_id, scene.action_id, True, attestation=scene.token)
    assert action.execution["success"] is True


def test_a_gate_says_what_the_server_says(scene: Scene) -> None:
    gate, name = scene.gate, scene.name
    assert gate.get_attestation(name).attestation == scene.token
    rotated = gate.rotate_signing_key("once a year")
    assert [key["kid"] for key in rotated["keys"]].index(rotated["kid"]) == 0
    assert gate.verify_attestation(scene.token).valid
    revoked = gate.revoke_attestation(name, "by mistake")
    assert set(revoked) == set(AttestationView.__struct_fields__)
    assert gate.verify_attestation(scene.token).error["code"] == "QWED-ATT-006"
    refusals: list[tuple[Callable[[], Any], str]] = [
        (lambda: gate.revoke_attestation(name, "again"), "QWED-REQ-009"),
        (lambda: gate.get_attestation("att_0"), "QWED-REQ-007"),
        (lambda: gate.revoke_attestation("att_0", "why"), "QWED-REQ-007"),
        (lambda: gate.revoke_attestation(name, ""), "QWED-REQ-001"),
        (lambda: gate.verify_attestation(None), "QWED-REQ-004"),  # type: ignore[arg-type]
        (lambda: gate.rotate_signing_key(""), "QWED-REQ-001"),
    ]
    for refused, code in refusals:
        with pytest.raises(GateError) as raised:
            refused()
        assert raised.value.code == code
