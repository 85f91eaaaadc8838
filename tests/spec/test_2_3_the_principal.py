"""Spec 2.3, third column: FAILED notifies the principal; CORRECTED and UNCERTAIN ask the principal."""

import hashlib
import hmac
import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.spec.conftest import Keyholders, SpecServer, keyholders_of, start_spec_server
from tests.spec.requests import (
    EMAIL,
    FALSE,
    SUM,
    UNDECIDED,
    WRONG_SUM,
    Json,
    action_of,
    claims_of,
    hash_of,
    said,
    settle,
)
from tests.spec.sections import spec
from tests.support.webhook_receivers import WebhookReceiver, answering, unused_port

EVAL: Json = {"type": "execute_code", "code": "eval(input())"}


@pytest.fixture(scope="module")
def wired(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SpecServer]:
    """Create a gate whose webhooks may call this machine."""
    directory = Path(tmp_path_factory.mktemp("wired")) / "data"
    with start_spec_server(directory, QWED_WEBHOOK_ALLOW_PRIVATE="true") as found:
        yield found


@pytest.fixture(scope="module")
def folk(wired: SpecServer) -> Iterator[Keyholders]:
    with keyholders_of(wired) as found:
        yield found


def _notices(folk: Keyholders) -> int:
    """Return the number of notices written since the webhook was set, sent or not."""
    shown = folk.owner.get("/webhook").json()
    written: int = shown["waiting"] + shown["delivered"] + shown["given_up"]
    return written


@pytest.fixture
def told(folk: Keyholders) -> Iterator[Keyholders]:
    """Set a webhook without a listener, so that its notices stay in the outbox and can be counted."""
    assert folk.owner.put("/webhook", json={"url": f"https://127.0.0.1:{unused_port()}/notices"}).status_code == 200
    yield folk
    assert folk.owner.delete("/webhook").json() == {"removed": True}


@spec("2.3")
@pytest.mark.parametrize("level", range(4))
@pytest.mark.parametrize("action", [FALSE, EVAL], ids=["FAILED", "BLOCKED"])
def test_failed_blocks_and_tells_the_principal_at_every_level(told: Keyholders, action: Json, level: int) -> None:
    ask = told.create_agent(trust_level=level)
    assert said(ask(action, 1)) == ("DENIED", "QWED-AGENT-005")
    # The violation and the loss of trust are two notices.
    assert _notices(told) == (2 if action is EVAL and level else 1)


@spec("2.3")
@pytest.mark.parametrize("action", [UNDECIDED, EMAIL], ids=["UNCERTAIN", "trust"])
def test_what_waits_for_the_principal_is_told_to_the_principal(told: Keyholders, action: Json) -> None:
    assert told.create_agent()(action, 1)["decision"] == "PENDING"
    assert _notices(told) == 1


@spec("2.3")
@pytest.mark.parametrize(
    "action", [SUM, WRONG_SUM, {"type": "unheard_of"}, {"type": "file_delete", "target": "x"}], ids=str
)
def test_what_neither_failed_nor_waits_is_told_to_nobody(told: Keyholders, action: Json) -> None:
    told.create_agent()(action, 1)
    assert _notices(told) == 0


@spec("2.3")
def test_the_principal_hears_of_the_failure_by_name_and_not_by_content(folk: Keyholders) -> None:
    receiver = WebhookReceiver(answering(200))
    try:
        hook = folk.owner.put("/webhook", json={"url": receiver.url(scheme="http"), "events": ["failed"]}).json()
        ask = folk.create_agent(principal_id="user_of_this_test")
        refused = ask(FALSE, 1)
        heard = receiver.next()
    finally:
        receiver.close()
        folk.owner.delete("/webhook")
    body = json.loads(heard.body)
    assert (body["event"], body["agent_id"], body["activity_id"]) == ("failed", ask.agent_id, refused["action_id"])
    assert body["principal_id"] == "user_of_this_test"
    assert FALSE["query"] not in heard.body.decode()
    time, signature = (part.split("=", 1)[1] for part in heard.headers["qwed-signature"].split(","))
    signed = hmac.new(hook["secret"].encode(), time.encode() + b"." + heard.body, hashlib.sha256).hexdigest()
    assert hmac.compare_digest(signed, signature)


# Request principal approval


@spec("2.3")
@pytest.mark.parametrize("level", range(4))
def test_uncertain_is_executed_once_the_principal_approves(keyholders: Keyholders, level: int) -> None:
    ask = keyholders.create_agent(trust_level=level)
    waiting = ask(UNDECIDED, 1)
    assert said(waiting) == ("PENDING", "QWED-AGENT-TRUST-002")
    assert settle(keyholders.approver, waiting["approval_id"]).status_code == 200
    action = action_of(ask, waiting["action_id"])
    assert (action["decision"], action["first_decision"]) == ("APPROVED", "PENDING")
    assert claims_of(action["attestation"])["sub"] == f"sha256:{hash_of(UNDECIDED)}"
    # A person decided; nothing was proven.
    assert claims_of(action["attestation"])["qwed"]["result"]["verified"] is False


@spec("2.3")
def test_uncertain_is_denied_once_the_principal_rejects(keyholders: Keyholders) -> None:
    ask = keyholders.create_agent()
    waiting = ask(UNDECIDED, 1)
    assert settle(keyholders.approver, waiting["approval_id"], "reject").status_code == 200
    action = action_of(ask, waiting["action_id"])
    assert (action["decision"], action["attestation"], action["verified_query"]) == ("DENIED", None, None)


@spec("2.3")
@pytest.mark.parametrize("risk", ["medium", "high", "critical"])
def test_corrected_above_low_is_corrected_once_the_principal_approves_the_correction(
    keyholders: Keyholders, risk: str
) -> None:
    tool = f"books_{risk}"
    keyholders.owner.put(f"/tools/{tool}", json={"risk_level": risk, "verification_engine": "math"})
    ask = keyholders.create_agent(trust_level=3)
    wrong = {"type": "tool_call", "tool": tool, "query": "2+2 = 5"}
    right = {**wrong, "query": "2+2 = 4"}
    waiting = ask(wrong, 1)
    assert (waiting["decision"], waiting["corrected"]) == ("PENDING", right)
    shown = keyholders.approver.get(f"/approvals/{waiting['approval_id']}").json()
    assert (shown["action"], shown["corrected"], shown["risk_level"]) == (wrong, right, risk)
    assert shown["action_hash"] == f"sha256:{hash_of(right)}"
    settled = settle(keyholders.approver, waiting["approval_id"]).json()
    assert settled["resolution"]["decision"] == "CORRECTED"
    action = action_of(ask, waiting["action_id"])
    assert (action["decision"], action["verified_query"]) == ("CORRECTED", "2+2 = 4")
    claims = claims_of(action["attestation"])
    assert claims["sub"] == f"sha256:{hash_of(right)}"
    assert (claims["qwed"]["decision"], claims["qwed"]["activity_id"]) == ("CORRECTED", waiting["action_id"])
    assert claims["qwed"]["result"]["status"] == "CORRECTED"


@spec("2.3")
def test_a_correction_at_low_risk_that_trust_holds_back_is_corrected_too(keyholders: Keyholders) -> None:
    ask = keyholders.create_agent(trust_level=0)
    waiting = ask(WRONG_SUM, 1)
    assert waiting["decision"] == "PENDING"
    settle(keyholders.approver, waiting["approval_id"])
    assert action_of(ask, waiting["action_id"])["decision"] == "CORRECTED"
