"""The database without its keys contains neither content nor a hash to guess it by (DESIGN 7)."""

import hashlib
from base64 import b64encode
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import pytest

import qwed
from qwed.gate import Gate
from qwed.model import canonical, sha256_of
from tests.support.manual_clock import ManualClock

TEXTS = {
    "action": "canary-of-the-action",
    "denied action": "canary-of-a-denied-action",
    "pending action": "canary-of-a-pending-action",
    "tool": "canary_of_a_parameter",
    "intent": "canary of the intent",
    "justification": "canary of the justification",
    "approver": "Canary Approver",
    "approval": "canary of an approval",
    "rejection": "canary of a rejection",
    "suspension": "canary of a suspension",
    "reactivation": "canary of a reactivation",
    "reduction": "canary of a reduction",
    "wish": "canary of a wish",
    "complaint": "canary of a complaint",
    "conversation": "canary conversation",
    "chain": "canary-chain",
    "subject": "canary.subject@example.com",
    "key": "canary-idempotency-key",
    "batch": "4242 = 4242",
    "result": "canary of a result",
    "unknown type": "canary_type",
}
CALCULATION = {"type": "calculate", "query": "4711 + 4712"}


def _mail(text: str) -> dict[str, Any]:
    return {"type": "send_email", "target": f"{text}@example.com", "parameters": {"body": text}}


class FilledDirectory(NamedTuple):
    """A directory with every kind of content, and the bytes of its database at two times."""

    directory: Path
    running: bytes
    ended: bytes
    hashes: dict[str, str]
    leaves: list[dict[str, Any]]

    def has(self, what: bytes) -> bool:
        return what in self.running or what in self.ended


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory) -> FilledDirectory:
    directory = tmp_path_factory.mktemp("secrecy") / "data"
    with qwed.open(directory, clock=ManualClock().clock(), trust_min_days=0, trust_min_actions=0) as gate:
        hashes = _fill(gate)
        entries = gate.services.store.entries(gate.organisation_id, 0, 1_000)
        running = _bytes(directory)
    return FilledDirectory(
        directory, running, _bytes(directory), hashes, [msgspec.json.decode(entry.leaf) for entry in entries]
    )


def _bytes(directory: Path) -> bytes:
    return b"".join(file.read_bytes() for file in sorted(directory.iterdir()) if file.name.startswith("qwed.db"))


def _fill(gate: Gate) -> dict[str, str]:
    """Store every text; return the hashes that a guess could be compared with."""
    agent_id = gate.register_agent(name="a", principal_id="p")["agent_id"]
    steps = iter(range(1, 50))

    def ask(action: Any, **more: Any) -> Any:
        context = {"conversation_id": TEXTS["conversation"], "step_number": next(steps), "subject": TEXTS["subject"]}
        return gate.verify_action(agent_id, action, {**context, "user_intent": TEXTS["intent"]}, **more)

    options = {"require_attestation": True, "chain_id": TEXTS["chain"]}
    done = ask(CALCULATION, options=options, idempotency_key=TEXTS["key"], justification=TEXTS["justification"])
    assert (done.decision, ask({"type": TEXTS["unknown type"], "query": "x"}).decision) == ("APPROVED", "DENIED")
    unknown = {"type": "tool_call", "tool": "unheard_of", "parameters": {"x": TEXTS["denied action"]}}
    assert ask(unknown).decision == "DENIED"
    gate.log_execution(agent_id, done.action_id, True, {"said": TEXTS["result"]}, done.attestation)
    first, second = ask(_mail(TEXTS["action"])), ask(_mail(TEXTS["tool"]))
    gate.approve(first.approval_id, TEXTS["approval"], TEXTS["approver"])
    gate.reject(second.approval_id, TEXTS["rejection"], TEXTS["approver"])
    assert ask(_mail(TEXTS["pending action"])).decision == "PENDING"
    gate.suspend_agent(agent_id, TEXTS["suspension"])
    gate.reactivate_agent(agent_id, TEXTS["reactivation"])
    gate.reduce_trust(agent_id, 0, TEXTS["reduction"])
    other = gate.register_agent(name="b", principal_id="p")["agent_id"]
    gate.request_trust_change(other, 2, TEXTS["wish"])
    gate.file_complaint(other, TEXTS["complaint"])
    gate.verify_batch([{"query": TEXTS["batch"], "type": "math"}])
    request = canonical([CALCULATION, TEXTS["subject"]])
    return {
        "an action": sha256_of(CALCULATION),
        "an action with what it was sent with": hashlib.sha256(request).hexdigest(),
        "an action that waits": sha256_of(_mail(TEXTS["pending action"])),
        "a result": sha256_of({"said": TEXTS["result"]}),
        "a conversation": hashlib.sha256(TEXTS["conversation"].encode()).hexdigest(),
        "a subject": hashlib.sha256(TEXTS["subject"].encode()).hexdigest(),
        "an idempotency key": hashlib.sha256(TEXTS["key"].encode()).hexdigest(),
    }


HASHES = ["an action", "an action with what it was sent with", "an action that waits", "a result", "a conversation"]
HASHES += ["a subject", "an idempotency key"]


@pytest.mark.parametrize("name", TEXTS)
def test_no_text_lies_in_the_database(filled: FilledDirectory, name: str) -> None:
    text = TEXTS[name]
    for form in (text, text.casefold(), text.replace(" ", "_"), b64encode(text.encode()).decode().rstrip("=")):
        assert not filled.has(form.encode())


@pytest.mark.parametrize("what", HASHES)
def test_no_hash_that_a_guess_could_be_compared_with_lies_in_the_database(filled: FilledDirectory, what: str) -> None:
    assert set(filled.hashes) == set(HASHES)
    assert not filled.has(filled.hashes[what].encode())
    assert not filled.has(bytes.fromhex(filled.hashes[what]))


def test_what_may_be_there_is_there(filled: FilledDirectory) -> None:
    """This proves that the other tests search where data is stored."""
    for expected in (b'"decision":"APPROVED"', b'"event":"suspended"', b"qwed_agent_", b'"v":2'):
        assert expected in filled.running
        assert expected in filled.ended


def test_no_key_lies_in_the_database(filled: FilledDirectory) -> None:
    for name in ("vault.key", "signing.key", "owner.key"):
        for line in (filled.directory / name).read_bytes().splitlines():
            assert not filled.has(line)
    assert not filled.has(bytes.fromhex((filled.directory / "vault.key").read_text()))


LEAF = {
    *("about", "action_type", "activity_id", "agent_id", "attestation_id", "by", "commitment", "cost_micros"),
    *("decision", "engine", "error", "event", "latency_us", "level_after", "level_before", "policy_hash"),
    *("risk_level", "self_approved", "status", "step_number", "success", "time_ms", "tokens", "v"),
}


def test_leaves_have_ids_numbers_and_words_of_closed_sets_only(filled: FilledDirectory) -> None:
    assert {name for leaf in filled.leaves for name in leaf} <= LEAF
    assert {leaf["v"] for leaf in filled.leaves} == {2}
    words = {value for leaf in filled.leaves for value in leaf.values() if isinstance(value, str)}
    assert all(word.isascii() and " " not in word and len(word) <= 64 for word in words)
