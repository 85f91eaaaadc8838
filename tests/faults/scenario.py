"""Data directory that survives many crashes of its server, and the invariants after each of them."""

import signal
import sys
from pathlib import Path
from typing import Any

import qwed
from qwed.gate import Gate
from qwed.ledger import verifier
from tests.support.agent_names import unique_name
from tests.support.data_directory_check import COMMITTED, DataDirectoryCheck
from tests.support.raw_http import RawResponse, message, send_concurrently
from tests.support.server import Server

CRASHING = (sys.executable, "-m", "tests.faults.crashing_server")
CALLERS, CALLS = 6, 72
FEW = 6
"""Number of decisions below the conduct window, even if every request is repeated."""
RISKY = ("high", "critical")


class ScenarioRequest:
    """Request of one caller, and its answer.

    In even rounds each request has an idempotency key, and some need an approval: such batches are transactions of
    several statements. In odd rounds there is neither, and the batch is one statement.
    """

    def __init__(self, number: int, agent_id: str, round_: int) -> None:
        self.agent_id = agent_id
        caller, call = number % CALLERS, number // CALLERS
        self.key = None if round_ % 2 else f"{round_}-{number}"
        # Two callers share a conversation, so that steps race too; every third action is of high risk, and every
        # third needs an approval.
        self.action: dict[str, Any] = {"type": "calculate", "query": f"{number}+{round_}"}
        if call % 3 == 1:
            self.action = {"type": "file_delete", "target": f"notes-{number}.txt"}
        elif call % 3 == 2 and self.key is not None:
            self.action = {"type": "send_email", "target": "someone@example.com", "parameters": {"n": number}}
        self.context = {"conversation_id": f"{round_}-{caller // 2}", "step_number": call + 1}
        self.heard: dict[str, Any] | None = None

    def message(self, owner_key: str) -> bytes:
        headers = {"X-API-Key": owner_key}
        if self.key is not None:
            headers["Idempotency-Key"] = self.key
        body = {"action": self.action, "context": self.context}
        return message(f"/agents/{self.agent_id}/verify", body, headers)

    def again(self, gate: Gate) -> Any:
        return gate.verify_action(self.agent_id, self.action, self.context, idempotency_key=self.key)


class CrashScenario:
    """Data directory that survives many crashes."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        with qwed.open(directory) as gate:
            assert gate.owner_key is not None
            self.owner_key: str = gate.owner_key
            # This creates the key of the principal: otherwise its creation could be the first commit of a round.
            gate.suspend_agent(register_agent(gate), "it has served its purpose")
        self.told: dict[str, str] = {}
        self.heads: list[dict[str, Any]] = []
        """Heads of the log that an outside observer has kept."""

    def asked(self, round_: int) -> list[ScenarioRequest]:
        """Return the requests of a round; its agents are so many that refusals cost none of them trust."""
        with qwed.open(self.directory) as gate:
            agents = [register_agent(gate) for _ in range(CALLS // FEW)]
            self.heads.append(dict(gate.audit_head()))
        return [ScenarioRequest(number, agents[_agent_of(number)], round_) for number in range(CALLS)]

    def end(self, place: str, times: int, round_: int) -> list[ScenarioRequest]:
        """Serve under load until the process kills itself at the place."""
        command = (*CRASHING, "--place", place, "--times", str(times))
        requests = self.asked(round_)
        server = Server(self.directory, command)
        answers = send_concurrently(server.base_url, [request.message(self.owner_key) for request in requests], CALLERS)
        assert server.wait() == -signal.SIGKILL
        for request, answer in zip(requests, answers, strict=True):
            self.hear(request, answer)
        return requests

    def hear(self, request: ScenarioRequest, answer: RawResponse | None) -> None:
        """Record the answer, if there was one."""
        if answer is None:
            return
        request.heard = answer.json
        if answer.json["decision"] in COMMITTED:
            self.told[answer.json["action_id"]] = answer.json["decision"]

    def require_kept(self) -> DataDirectoryCheck:
        """Require that every reported decision is in the log with its id, and that the data is consistent."""
        books = DataDirectoryCheck(self.directory)
        books.require_consistent()
        logged = {activity.activity_id: activity.decision for activity in books.activities}
        assert self.told == {action_id: logged.get(action_id) for action_id in self.told}
        risky = sum(activity.decision == "APPROVED" and activity.risk in RISKY for activity in books.activities)
        assert sum(usage["high_risk_day"] for usage in books.usage.values()) == risky
        return books


def require_append_only(scenario: CrashScenario, gate: Gate) -> None:
    """Require that the log extends every kept head and contains every reported decision (P5)."""
    head = dict(gate.audit_head())
    keys = verifier.public_keys({"keys": gate.services.signer.keyring.public_jwks()})
    root = verifier.read_head(head, keys).root
    for old_head in scenario.heads:
        path = [bytes.fromhex(node) for node in gate.audit_consistency(old_head["size"], head["size"])["path"]]
        first = verifier.read_head(old_head, keys).root
        assert verifier.verify_consistency(old_head["size"], head["size"], path, first, root)
    for action_id in [*scenario.told][-CALLS:]:
        inclusion = gate.audit_inclusion(activity_id=action_id, size=head["size"])
        path = [bytes.fromhex(node) for node in inclusion["path"]]
        hashed = bytes.fromhex(inclusion["leaf_hash"])
        assert verifier.verify_inclusion(hashed, inclusion["index"], head["size"], path, root)
    scenario.heads.append(head)


def register_agent(gate: Gate) -> str:
    """Register a trusted agent with high limits."""
    limits = {"max_high_risk_calls_per_day": 1_000_000}
    agent_id: str = gate.register_agent(name=unique_name(), principal_id="p", type="trusted", budget=limits)["agent_id"]
    return agent_id


def _agent_of(number: int) -> int:
    """Return the agent of a call: callers of one conversation share one, and get a new one every few calls."""
    caller, call = number % CALLERS, number // CALLERS
    return (caller // 2) * (2 * CALLS // CALLERS // FEW) + 2 * call // FEW


def retry_everything(scenario: CrashScenario, asked: list[ScenarioRequest], before: DataDirectoryCheck) -> None:
    """Send every request again, as a client without an answer does: decided once, charged once."""
    done = {(one.agent_id, one.conversation_id, one.step_number) for one in before.committed()}
    with qwed.open(scenario.directory) as gate:
        require_append_only(scenario, gate)
        for one in asked:
            answer = one.again(gate)
            if one.heard is not None and one.heard["decision"] in COMMITTED:
                _require_same(one, one.heard, answer)
            if answer.decision in COMMITTED:
                scenario.told[answer.action_id] = answer.decision
            place = (one.agent_id, one.context["conversation_id"], one.context["step_number"])
            if one.heard is None and place not in done:
                _require_free(answer)
            if one.key is None and place in done:
                assert answer.decision not in COMMITTED


def _require_same(one: ScenarioRequest, heard: dict[str, Any], answer: Any) -> None:
    """Require the same answer for the same key; without a key the step is used up."""
    if one.key is not None:
        assert (answer.decision, answer.action_id) == (heard["decision"], heard["action_id"])
    else:
        assert (answer.decision, answer.error["code"]) == ("DENIED", "QWED-AGENT-LOOP-002")


def _require_free(answer: Any) -> None:
    """Require that the step is not reserved any more, though a later one may have passed it."""
    if answer.decision not in COMMITTED:
        assert answer.error["code"] == "QWED-AGENT-LOOP-002"
