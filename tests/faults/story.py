"""One data directory that lives through many ends of its server, and what must be true of it after each of them."""

import signal
import sys
from pathlib import Path
from typing import Any

import qwed
from qwed.gate import Gate
from qwed.ledger import verifier
from tests.support.books import COMMITTED, Books
from tests.support.server import Server
from tests.support.wire import Heard, asked_at_once, message

CRASHING = (sys.executable, "-m", "tests.faults.crashing_server")
CALLERS, CALLS = 6, 72
FEW = 6
"""Fewer decisions than conduct is judged by, even when everything is asked again."""
RISKY = ("high", "critical")


class Asked:
    """What one caller asked, and what it heard.

    In even rounds each request has an idempotency key, and some wait for a person: such batches are a transaction of
    several statements. In odd rounds there is neither, and the batch is one statement.
    """

    def __init__(self, number: int, agent_id: str, round_: int) -> None:
        self.agent_id = agent_id
        caller, call = number % CALLERS, number // CALLERS
        self.key = None if round_ % 2 else f"{round_}-{number}"
        # Two callers share a conversation, so that steps race too; every third asks for what is of high risk, and
        # every third for what a person must approve.
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


class Story:
    """One data directory that lives through many ends."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        with qwed.open(directory) as gate:
            assert gate.owner_key is not None
            self.owner_key: str = gate.owner_key
            # The principal has a key from now on: otherwise making one could be the first commit of a round.
            gate.suspend_agent(survivor(gate), "it has served its purpose")
        self.told: dict[str, str] = {}
        self.heads: list[dict[str, Any]] = []
        """What somebody outside has kept of the log."""

    def asked(self, round_: int) -> list[Asked]:
        """Every round has agents of its own, so many that none is refused often enough to lose trust for it."""
        with qwed.open(self.directory) as gate:
            agents = [survivor(gate) for _ in range(CALLS // FEW)]
            self.heads.append(dict(gate.audit_head()))
        return [Asked(number, agents[_agent_of(number)], round_) for number in range(CALLS)]

    def end(self, place: str, times: int, round_: int) -> list[Asked]:
        """Serve under load until the process ends itself at the place."""
        command = (*CRASHING, "--place", place, "--times", str(times))
        asked = self.asked(round_)
        server = Server(self.directory, command)
        heard = asked_at_once(server.base_url, [one.message(self.owner_key) for one in asked], CALLERS)
        assert server.wait() == -signal.SIGKILL
        for one, answer in zip(asked, heard, strict=True):
            self.hear(one, answer)
        return asked

    def hear(self, one: Asked, answer: Heard | None) -> None:
        """Keep in mind what was told, if anything was."""
        if answer is None:
            return
        one.heard = answer.json
        if answer.json["decision"] in COMMITTED:
            self.told[answer.json["action_id"]] = answer.json["decision"]

    def require_kept(self) -> Books:
        """Everything told is in the log under the same id, and the books are one story."""
        books = Books(self.directory)
        books.require_one_story()
        kept = {activity.activity_id: activity.decision for activity in books.activities}
        assert self.told == {action_id: kept.get(action_id) for action_id in self.told}
        risky = sum(activity.decision == "APPROVED" and activity.risk in RISKY for activity in books.activities)
        assert sum(usage["high_risk_day"] for usage in books.usage.values()) == risky
        return books


def require_grown(story: Story, gate: Gate) -> None:
    """P5 to somebody outside: the log goes on from every head there was, and holds whatever was told."""
    head = dict(gate.audit_head())
    keys = verifier.public_keys({"keys": gate.services.signer.keyring.public_jwks()})
    root = verifier.read_head(head, keys).root
    for kept in story.heads:
        path = [bytes.fromhex(each) for each in gate.audit_consistency(kept["size"], head["size"])["path"]]
        first = verifier.read_head(kept, keys).root
        assert verifier.verify_consistency(kept["size"], head["size"], path, first, root)
    for action_id in [*story.told][-CALLS:]:
        found = gate.audit_inclusion(activity_id=action_id, size=head["size"])
        path = [bytes.fromhex(each) for each in found["path"]]
        hashed = bytes.fromhex(found["leaf_hash"])
        assert verifier.verify_inclusion(hashed, found["index"], head["size"], path, root)
    story.heads.append(head)


def survivor(gate: Gate) -> str:
    """A trusted agent that hardly anything stops."""
    limits = {"max_high_risk_calls_per_day": 1_000_000}
    agent_id: str = gate.register_agent(name="survivor", principal_id="p", type="trusted", budget=limits)["agent_id"]
    return agent_id


def _agent_of(number: int) -> int:
    """Callers of one conversation share an agent, a new one after every few calls."""
    caller, call = number % CALLERS, number // CALLERS
    return (caller // 2) * (2 * CALLS // CALLERS // FEW) + 2 * call // FEW


def retry_everything(story: Story, asked: list[Asked], before: Books) -> None:
    """A client that got no answer sends the same request again: decided once, charged once."""
    done = {(one.agent_id, one.conversation_id, one.step_number) for one in before.committed()}
    with qwed.open(story.directory) as gate:
        require_grown(story, gate)
        for one in asked:
            answer = one.again(gate)
            if one.heard is not None and one.heard["decision"] in COMMITTED:
                _require_same(one, one.heard, answer)
            if answer.decision in COMMITTED:
                story.told[answer.action_id] = answer.decision
            place = (one.agent_id, one.context["conversation_id"], one.context["step_number"])
            if one.heard is None and place not in done:
                _require_free(answer)
            if one.key is None and place in done:
                assert answer.decision not in COMMITTED


def _require_same(one: Asked, heard: dict[str, Any], answer: Any) -> None:
    """What was told is told again under its key; without one its step is used up."""
    if one.key is not None:
        assert (answer.decision, answer.action_id) == (heard["decision"], heard["action_id"])
    else:
        assert (answer.decision, answer.error["code"]) == ("DENIED", "QWED-AGENT-LOOP-002")


def _require_free(answer: Any) -> None:
    """The step was in flight or never asked: nothing may hold it now, though a later one may have passed it."""
    if answer.decision not in COMMITTED:
        assert answer.error["code"] == "QWED-AGENT-LOOP-002"
