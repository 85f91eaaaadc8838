"""To be added to tests/unit/kernel/test_vault.py and test_secrecy.py with the patch."""
import sqlite3
from pathlib import Path
import pytest
import qwed
from qwed.gate import GateError
from tests.support.clock import HandClock


def test_content_that_was_put_in_the_clear_beside_a_leaf_that_commits_is_not_believed(tmp_path: Path) -> None:
    with qwed.open(tmp_path / "data", clock=HandClock().clock()) as gate:
        agent_id = gate.register_agent(name="a", principal_id="p")["agent_id"]
        asked = gate.verify_action(agent_id, {"type": "send_email", "target": "a@example.com"}, {"conversation_id": "m", "step_number": 1})
    forged = '{"action":{"type":"send_email","target":"mallory@example.com"}}'
    with sqlite3.connect(tmp_path / "data" / "qwed.db") as other:
        other.execute("UPDATE activities SET subject_id = NULL, payload = ? WHERE activity_id = ?", (forged, asked.action_id))
    other.close()
    with qwed.open(tmp_path / "data", clock=HandClock().clock()) as gate:
        [waiting] = gate.list_approvals()
        assert (waiting["content"], waiting["action"]) == ("tampered", None)
        with pytest.raises(GateError, match="was changed in the store"):
            gate.approve(waiting["approval_id"], "yes")


def test_a_chain_lies_in_the_database_under_a_keyed_name(tmp_path: Path) -> None:
    with qwed.open(tmp_path / "data", clock=HandClock().clock()) as gate:
        agent_id = gate.register_agent(name="a", principal_id="p")["agent_id"]
        for step in (1, 2):
            gate.verify_action(agent_id, {"type": "calculate", "query": f"{step}+2"}, {"conversation_id": "m", "step_number": step}, {"chain_id": "canary-chain"})
    assert b"canary-chain" not in (tmp_path / "data" / "qwed.db").read_bytes()
