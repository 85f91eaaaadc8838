"""Attestations after issuance: verification by anyone, revocation, key rotation."""

import hmac
import json
import os
import subprocess
import sys
from base64 import urlsafe_b64encode
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from hashlib import sha256
from pathlib import Path
from typing import Any

import httpx
import pytest
from joserfc import jwt as another_library
from joserfc.jwk import KeySet

from qwed.ledger.attestation_verifier import check_chain, check_receipt
from qwed.ledger.keyring import fresh_keyring, read_keyring
from qwed.ledger.verifier import public_keys
from tests.conftest import AgentConversation
from tests.spec.conftest import Keyholders, SpecServer, keyholders_of, start_spec_server
from tests.spec.requests import EMAIL, SUM, WRITE, Json, action_of, another, claims_of, hash_of, proof_of, settle
from tests.spec.sections import spec
from tests.support.server import Server
from tests.support.store_choice import SQLITE, chosen
from tests.support.stored_rows import StoredRows

TYPE = "qwed-attestation+jwt"
ATTESTED = {"require_attestation": True}
REASON = {"reason": "it was given by mistake"}
_ROTATE = (sys.executable, "-m", "qwed.cli", "keys", "rotate")


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return Path(tmp_path_factory.mktemp("attestations")) / "data"


@pytest.fixture(scope="module")
def spec_server(data: Path) -> Iterator[SpecServer]:
    """Server of its own, because its keys are rotated here."""
    with start_spec_server(data) as found:
        yield found


@pytest.fixture(scope="module")
def keyholders(spec_server: SpecServer) -> Iterator[Keyholders]:
    with keyholders_of(spec_server) as found:
        yield found


@pytest.fixture
def ask(keyholders: Keyholders) -> AgentConversation:
    return keyholders.create_agent(type="trusted")


def _check(client: httpx.Client, token: Any) -> Json:
    response = client.post("/attestation/verify", json={"jwt": token})
    assert response.status_code == 200, response.text
    found: Json = response.json()
    assert set(found) == {"valid", "claims", "error"}
    assert found["valid"] is (found["error"] is None)
    return found


def _valid(client: httpx.Client, token: str) -> bool:
    valid: bool = _check(client, token)["valid"]
    return valid


def _code(client: httpx.Client, token: Any) -> str | None:
    error = _check(client, token)["error"]
    return None if error is None else error["code"]


def _attested(ask: AgentConversation, step: int = 1, action: Json = SUM, **options: Any) -> str:
    answer = ask(action, step, options=ATTESTED | options)
    assert proof_of(answer) == "token", answer
    token: str = answer["attestation"]
    return token


def _name(token: str) -> str:
    name: str = claims_of(token)["jti"]
    return name


def _keys(client: httpx.Client) -> Any:
    return client.get("/.well-known/jwks.json").json()


def _shown(client: httpx.Client, attestation_id: str) -> Json:
    response = client.get(f"/attestation/{attestation_id}")
    assert response.status_code == 200, response.text
    shown: Json = response.json()
    return shown


def _refusal(response: httpx.Response) -> tuple[int, str]:
    return response.status_code, response.json()["error"]["code"]


# Issuing


@spec("4.2", "2.3")
def test_high_risk_is_attested_by_itself_and_anything_else_on_request(keyholders: Keyholders) -> None:
    ask = keyholders.create_agent(type="trusted")
    assert proof_of(ask(WRITE, 1)) == "token"
    assert proof_of(ask(SUM, 2)) == "receipt"
    assert proof_of(ask(another(1), 3, options=ATTESTED)) == "token"


@spec("4.2")
def test_an_attestation_has_every_claim(keyholders: Keyholders, ask: AgentConversation) -> None:
    answer = ask(WRITE, 1)
    token = another_library.decode(
        answer["attestation"], KeySet.import_key_set(_keys(keyholders.owner)), algorithms=["ES256"]
    )
    kid = _keys(keyholders.owner)["keys"][0]["kid"]
    assert token.header == {"alg": "ES256", "kid": kid, "typ": TYPE}
    claims = token.claims
    shown = _shown(keyholders.owner, claims["jti"])
    index = action_of(ask, answer["action_id"])["log_index"]
    assert claims == {
        "iss": claims["iss"],
        "sub": f"sha256:{hash_of(WRITE)}",
        "iat": claims["iat"],
        "exp": claims["iat"] + 86_400,
        "jti": claims["jti"],
        "qwed": {
            "version": "1.0",
            "result": {"status": "VERIFIED", "verified": True, "engine": "path", "confidence": 1},
            "decision": "APPROVED",
            "risk_level": "high",
            "agent_id": ask.agent_id,
            "activity_id": answer["action_id"],
            "policy_hash": claims["qwed"]["policy_hash"],
            "log": shown["log"],
        },
    }
    assert claims["qwed"]["log"]["index"] == index < claims["qwed"]["log"]["size"]
    assert len(bytes.fromhex(claims["qwed"]["log"]["root"])) == 32
    assert claims["iss"].startswith("did:qwed:node:")


# Checking


@spec("4.2")
def test_whoever_holds_an_attestation_may_check_it(spec_server: SpecServer, ask: AgentConversation) -> None:
    token = _attested(ask)
    for client in (
        spec_server.client(),
        spec_server.client("foreign"),
        spec_server.client(token=ask.agent["agent_token"]),
    ):
        with client:
            assert _check(client, token) == {"valid": True, "claims": claims_of(token), "error": None}


def _b64(data: bytes) -> str:
    return urlsafe_b64encode(data).rstrip(b"=").decode()


def _segment(value: Any) -> str:
    return _b64(json.dumps(value, separators=(",", ":")).encode())


class Forger:
    """Attacker with a token and, in the worst case, our signing key."""

    def __init__(self, token: str, data: Path, jwks: Json) -> None:
        self.token = token
        self.head, self.body, self.signature = token.split(".")
        self.claims = claims_of(token)
        self.ours = read_keyring(data).current
        self.jwk: Json = jwks["keys"][0]

    def signed(self, **changed: Any) -> str:
        """Return a token signed with our key; a claim that is None is omitted."""
        claims = {name: value for name, value in (self.claims | changed).items() if value is not None}
        return self.ours.sign(TYPE, json.dumps(claims).encode())

    def said(self, **changed: Any) -> str:
        """Return the same for a member of `qwed`."""
        inner = {name: value for name, value in (self.claims["qwed"] | changed).items() if value is not None}
        return self.signed(qwed=inner)

    def under(self, header: Json) -> str:
        """Return the claims under another header with the old signature."""
        return f"{_segment(header)}.{self.body}.{self.signature}"

    def hmac_with_the_public_key(self) -> str:
        """Return a token that uses the public key as HMAC secret."""
        head = _segment({"alg": "HS256", "kid": self.jwk["kid"], "typ": TYPE})
        secret = json.dumps(self.jwk).encode()
        return f"{head}.{self.body}.{_b64(hmac.digest(secret, f'{head}.{self.body}'.encode(), sha256))}"

    def with_a_key_of_its_own(self) -> str:
        """Return a validly signed token that carries its own key."""
        key = fresh_keyring().current
        head = _segment({"alg": "ES256", "kid": key.kid, "typ": TYPE, "jwk": key.jwk})
        _head, body, signature = key.sign(TYPE, json.dumps(self.claims).encode()).split(".")
        return f"{head}.{body}.{signature}"


Forge = Callable[[Forger], Any]
_NOBODY = "att_" + "0" * 26


def _without(claim: str) -> Forge:
    return lambda it: it.signed(**{claim: None})


def _without_said(member: str) -> Forge:
    return lambda it: it.said(**{member: None})


FORGED: dict[str, tuple[str, bool, Forge]] = {
    # The code, whether the claims are proven and therefore shown, and how the token is made.
    "nothing": ("QWED-ATT-001", False, lambda _it: ""),
    "one word": ("QWED-ATT-001", False, lambda _it: "attestation"),
    "two parts": ("QWED-ATT-001", False, lambda it: f"{it.head}.{it.body}"),
    "four parts": ("QWED-ATT-001", False, lambda it: it.token + ".x"),
    "dots": ("QWED-ATT-001", False, lambda _it: ".."),
    "no base64": ("QWED-ATT-001", False, lambda it: f"{it.head}.{it.body}!.{it.signature}"),
    "padded": ("QWED-ATT-001", False, lambda it: it.token + "="),
    "a line more": ("QWED-ATT-001", False, lambda it: it.token + "\n"),
    "blanks around it": ("QWED-ATT-001", False, lambda it: f" {it.token} "),
    "no JSON": ("QWED-ATT-001", False, lambda it: f"{it.head}.{_b64(b'claims')}.{it.signature}"),
    "half a character": ("QWED-ATT-001", False, lambda it: f"{it.head}.{_b64(bytes([0xFF]))}.{it.signature}"),
    "a list": ("QWED-ATT-001", False, lambda it: f"{it.head}.{_segment([])}.{it.signature}"),
    "a claim twice": (
        "QWED-ATT-001",
        False,
        lambda it: it.ours.sign(TYPE, json.dumps(it.claims).encode()[:-1] + b',"sub":"another"}'),
    ),
    "deep": ("QWED-ATT-001", False, lambda it: f"{it.head}.{_b64(b'[' * 5000)}.{it.signature}"),
    "long": ("QWED-ATT-001", False, lambda it: f"{it.head}.{'A' * 900_000}.{it.signature}"),
    "unreadable": ("QWED-ATT-001", False, lambda _it: "\u202e\x00\ufffd.\u0301.\U0001f510"),
    "no algorithm": ("QWED-ATT-001", False, lambda it: it.under({"alg": "none", "typ": TYPE})),
    "an algorithm of another kind": ("QWED-ATT-001", False, lambda it: it.hmac_with_the_public_key()),
    "a key of its own": ("QWED-ATT-001", False, lambda it: it.with_a_key_of_its_own()),
    "another type": ("QWED-ATT-001", False, lambda it: it.ours.sign("JWT", json.dumps(it.claims).encode())),
    "a head of the log": ("QWED-ATT-001", False, lambda it: it.ours.sign("qwed-head+jwt", b"{}")),
    "an issuer that is not us": ("QWED-ATT-002", True, lambda it: it.signed(iss="did:qwed:node:" + "0" * 32)),
    "no issuer of nodes": ("QWED-ATT-002", True, lambda it: it.signed(iss="https://example.com")),
    "another key": (
        "QWED-ATT-003",
        False,
        lambda it: fresh_keyring().current.sign(TYPE, json.dumps(it.claims).encode()),
    ),
    "another key under our kid": (
        "QWED-ATT-003",
        False,
        lambda it: f"{it.head}." + fresh_keyring().current.sign(TYPE, b"{}").partition(".")[2],
    ),
    "another claim": (
        "QWED-ATT-003",
        False,
        lambda it: f"{it.head}.{_segment({**it.claims, 'exp': 9**9})}.{it.signature}",
    ),
    "no signature": ("QWED-ATT-003", False, lambda it: f"{it.head}.{it.body}."),
    "a signature of zeros": ("QWED-ATT-003", False, lambda it: f"{it.head}.{it.body}.{_b64(bytes(64))}"),
    "expired": ("QWED-ATT-004", True, lambda it: it.signed(iat=it.claims["iat"] - 90, exp=it.claims["iat"] - 30)),
    "not yet valid": ("QWED-ATT-005", True, lambda it: it.signed(iat=it.claims["iat"] + 3600)),
    "not before": ("QWED-ATT-005", True, lambda it: it.signed(nbf=it.claims["iat"] + 3600)),
    **{f"no {name}": ("QWED-ATT-007", True, _without(name)) for name in ("iss", "sub", "iat", "exp", "jti", "qwed")},
    **{
        f"no qwed.{name}": ("QWED-ATT-007", True, _without_said(name))
        for name in ("version", "result", "decision", "log")
    },
    "a claim of another kind": ("QWED-ATT-007", True, lambda it: it.signed(exp="tomorrow")),
    "a leaf outside of the tree": (
        "QWED-ATT-007",
        True,
        lambda it: it.said(log={**it.claims["qwed"]["log"], "size": 0}),
    ),
    "a chain without a beginning": ("QWED-ATT-008", True, lambda it: it.said(chain_id="c", chain_index=1)),
    "a chain that begins with another": (
        "QWED-ATT-008",
        True,
        lambda it: it.said(chain_id="c", chain_index=0, previous_attestation=it.claims["jti"]),
    ),
    "a chain after nobody": (
        "QWED-ATT-008",
        True,
        lambda it: it.said(chain_id="c", chain_index=1, previous_attestation=_NOBODY),
    ),
    "an attestation that was never given": ("QWED-SEC-003", True, lambda it: it.signed(jti=_NOBODY)),
    "another decision": ("QWED-SEC-003", True, lambda it: it.said(decision="CORRECTED")),
    "another action": ("QWED-SEC-003", True, lambda it: it.signed(sub="sha256:" + "0" * 64)),
    "another agent": ("QWED-SEC-003", True, lambda it: it.said(agent_id="agent_" + "0" * 24)),
    "another time": ("QWED-SEC-003", True, lambda it: it.signed(iat=it.claims["iat"] - 1)),
    "another place": ("QWED-SEC-003", True, lambda it: it.said(log={**it.claims["qwed"]["log"], "index": 0})),
    "another root": ("QWED-SEC-003", True, lambda it: it.said(log={**it.claims["qwed"]["log"], "root": "0" * 64})),
    "a chain it is not in": ("QWED-SEC-003", True, lambda it: it.said(chain_id="c", chain_index=0)),
    "something more": ("QWED-SEC-003", True, lambda it: it.said(granted="everything")),
}


@pytest.fixture(scope="module")
def forger(spec_server: SpecServer, keyholders: Keyholders, data: Path) -> Forger:
    return Forger(_attested(keyholders.create_agent()), data, _keys(keyholders.owner))


@spec("4.2", "A")
@pytest.mark.parametrize("case", FORGED)
def test_a_forgery_is_told_by_its_code(spec_server: SpecServer, forger: Forger, case: str) -> None:
    code, proven, forge = FORGED[case]
    with spec_server.client() as stranger:
        found = _check(stranger, forge(forger))
        assert _valid(stranger, forger.token)
    assert found["error"]["code"] == code, found
    assert (found["claims"] is not None) is proven
    message = found["error"]["message"]
    assert message.isprintable()
    assert len(message) < 300
    assert not message.endswith(".")


@spec("B")
@pytest.mark.parametrize(
    ("body", "code"),
    [
        ({}, "QWED-REQ-004"),
        ({"jwt": None}, "QWED-REQ-004"),
        ({"jwt": 5}, "QWED-REQ-001"),
        ({"jwt": ["a.b.c"]}, "QWED-REQ-001"),
        ({"jwt": {"index": 0, "leaf": "{}", "path": [], "head": {}}}, "QWED-REQ-001"),
        ({"jwt": "a.b.c", "keys": []}, "QWED-REQ-001"),
        ({"token": "a.b.c"}, "QWED-REQ-001"),
        ([], "QWED-REQ-001"),
        ("a.b.c", "QWED-REQ-001"),
    ],
)
def test_what_is_no_question_about_a_token_is_refused(spec_server: SpecServer, body: Any, code: str) -> None:
    with spec_server.client() as stranger:
        assert _refusal(stranger.post("/attestation/verify", json=body)) == (400, code)


@spec("4.2")
def test_a_receipt_is_checked_without_asking_anybody(keyholders: Keyholders, ask: AgentConversation) -> None:
    answer = ask(SUM, 1)
    checked = check_receipt(answer["attestation"], public_keys(_keys(keyholders.owner)))
    assert checked.valid
    assert checked.claims is not None
    assert checked.claims["activity_id"] == answer["action_id"]


# Looking


@spec("7.1", "B")
def test_an_attestation_is_issued_again_byte_for_byte(
    spec_server: SpecServer, keyholders: Keyholders, ask: AgentConversation
) -> None:
    token = _attested(ask)
    claims = claims_of(token)
    with spec_server.client(token=ask.agent["agent_token"]) as itself:
        told = [_shown(client, claims["jti"]) for client in (*keyholders, itself)]
    assert told == [told[0]] * 4
    assert told[0] == {
        "attestation_id": claims["jti"],
        "attestation": token,
        "activity_id": claims["qwed"]["activity_id"],
        "agent_id": ask.agent_id,
        "issued_at": told[0]["issued_at"],
        "expires_at": told[0]["expires_at"],
        "revoked": None,
        "erased": False,
        "log": claims["qwed"]["log"],
    }


@spec("7.1", "9.8")
def test_nobody_else_is_shown_an_attestation_or_told_that_it_exists(
    spec_server: SpecServer, keyholders: Keyholders, ask: AgentConversation
) -> None:
    real, none = (f"/attestation/{name}" for name in (_name(_attested(ask)), _NOBODY))
    other = keyholders.create_agent()
    with spec_server.client("foreign") as foreign, spec_server.client(token=other.agent["agent_token"]) as agent:
        assert _refusal(foreign.get(real)) == (404, "QWED-REQ-007")
        assert foreign.get(real).content == foreign.get(none).content
        assert _refusal(foreign.post(f"{real}/revoke", json=REASON)) == (404, "QWED-REQ-007")
        assert _refusal(agent.get(real)) == (401, "QWED-AGENT-002")
        assert agent.get(real).content == agent.get(none).content
    with spec_server.client("foreign", ask.agent["agent_token"]) as both:
        assert _refusal(both.get(real)) == (404, "QWED-REQ-007")
    with spec_server.client("owner", other.agent["agent_token"]) as both:
        assert _refusal(both.get(real)) == (401, "QWED-AGENT-002")


@spec("4.3", "7.1")
def test_what_a_person_approved_is_attested_under_the_action_that_was_asked_for(keyholders: Keyholders) -> None:
    ask = keyholders.create_agent()
    waiting = ask(EMAIL, 1)
    assert proof_of(waiting) is None
    assert settle(keyholders.approver, waiting["approval_id"]).status_code == 200
    action = action_of(ask, waiting["action_id"])
    shown = _shown(keyholders.owner, action["attestation_id"])
    assert (shown["activity_id"], shown["attestation"]) == (waiting["action_id"], action["attestation"])
    assert _valid(keyholders.owner, action["attestation"])
    assert claims_of(action["attestation"])["sub"] == f"sha256:{hash_of(EMAIL)}"


@spec("4.2")
def test_the_verdict_of_an_engine_is_attested_without_an_agent(spec_server: SpecServer, keyholders: Keyholders) -> None:
    asked = {"expression": "2+2 = 4", "options": {"include_attestation": True}}
    token = keyholders.member.post("/verify/math", json=asked).json()["attestation"]
    shown = _shown(keyholders.member, _name(token))
    assert (shown["agent_id"], shown["attestation"]) == (None, token)
    assert _valid(keyholders.member, token)
    with spec_server.client(token=keyholders.create_agent().agent["agent_token"]) as agent:
        assert _refusal(agent.get(f"/attestation/{_name(token)}")) == (401, "QWED-AGENT-002")
    assert keyholders.approver.post(f"/attestation/{_name(token)}/revoke", json=REASON).status_code == 200
    assert _code(keyholders.member, token) == "QWED-ATT-006"


@spec("8.3", "7.1")
def test_a_stopped_agent_is_given_no_token_again(keyholders: Keyholders, ask: AgentConversation) -> None:
    token = _attested(ask)
    assert keyholders.member.post(f"/agents/{ask.agent_id}/suspend", json=REASON).status_code == 200
    assert _shown(keyholders.owner, _name(token))["attestation"] is None
    assert keyholders.owner.post(f"/agents/{ask.agent_id}/reactivate", json=REASON).status_code == 200
    assert _shown(keyholders.owner, _name(token))["attestation"] == token
    assert _valid(keyholders.owner, token)


@spec("7.1")
def test_what_was_erased_is_not_issued_again_and_a_token_that_is_kept_still_holds(keyholders: Keyholders) -> None:
    ask = keyholders.create_agent(type="trusted")
    token = ask(SUM, 1, options=ATTESTED, subject="a customer of old")["attestation"]
    assert _shown(keyholders.owner, _name(token))["erased"] is False
    assert keyholders.owner.post("/audit/erase", json={"subject": "a customer of old"}).json()["erased"] is True
    shown = _shown(keyholders.owner, _name(token))
    assert (shown["attestation"], shown["erased"]) == (None, True)
    assert shown["log"] == claims_of(token)["qwed"]["log"]
    assert _valid(keyholders.owner, token)
    assert (
        keyholders.owner.post(f"/attestation/{_name(token)}/revoke", json=REASON).json()["revoked"]["reason"]
        == (REASON["reason"])
    )


# Revoking


@spec("7.1", "8.1")
def test_owners_and_approvers_revoke_and_nobody_else(
    spec_server: SpecServer, keyholders: Keyholders, ask: AgentConversation
) -> None:
    token = _attested(ask)
    path = f"/attestation/{_name(token)}/revoke"
    with spec_server.client(token=ask.agent["agent_token"]) as itself:
        for client in (keyholders.member, itself):
            assert _refusal(client.post(path, json=REASON)) == (403, "QWED-AUTH-003")
    with spec_server.client() as nobody:
        assert _refusal(nobody.post(path, json=REASON)) == (401, "QWED-AUTH-001")
    assert _refusal(keyholders.owner.post(path, json={})) == (400, "QWED-REQ-004")
    assert _valid(keyholders.owner, token)
    revoked = keyholders.approver.post(path, json=REASON)
    assert revoked.status_code == 200, revoked.text
    assert revoked.json() == _shown(keyholders.member, _name(token))
    assert revoked.json()["attestation"] is None
    assert revoked.json()["revoked"]["reason"] == REASON["reason"]
    assert _refusal(keyholders.owner.post(path, json=REASON)) == (409, "QWED-REQ-009")
    found = _check(keyholders.owner, token)
    assert (found["error"]["code"], found["claims"]) == ("QWED-ATT-006", claims_of(token))


@spec("7.2")
def test_a_revocation_is_in_the_log_under_the_name_of_whoever_made_it(
    keyholders: Keyholders, ask: AgentConversation
) -> None:
    token = _attested(ask)
    revoked = keyholders.approver.post(f"/attestation/{_name(token)}/revoke", json=REASON).json()
    (logged,) = ask.activity(kind="change", limit=1)["activities"]
    assert (logged["event"], logged["by"]) == ("attestation_revoked", revoked["revoked"]["by"])
    assert logged["change"] == {"about": _name(token), **REASON}


@spec("7.1", "7.2")
def test_the_revocation_of_a_claim_names_who_made_it_and_why(keyholders: Keyholders) -> None:
    asked = {"expression": "3+3 = 6", "options": {"include_attestation": True}}
    token = keyholders.member.post("/verify/math", json=asked).json()["attestation"]
    shown = keyholders.approver.post(f"/attestation/{_name(token)}/revoke", json=REASON).json()["revoked"]
    logged = next(
        each
        for each in keyholders.owner.get("/changes").json()["changes"]
        if each["change"].get("about") == _name(token)
    )
    assert (shown["by"], shown["reason"]) == (logged["by"], REASON["reason"])
    assert shown["by"].startswith("key_")


@spec("4.3", "7.1")
def test_a_revoked_action_keeps_its_decision_and_gives_nothing_to_act_on(
    keyholders: Keyholders, ask: AgentConversation
) -> None:
    body = {"action": SUM, "context": {"conversation_id": "c", "step_number": 1}, "options": ATTESTED}
    first = ask.send(body, {"Idempotency-Key": "again"}).json()
    assert ask.send(body, {"Idempotency-Key": "again"}).json() == first
    name = _name(first["attestation"])
    keyholders.owner.post(f"/attestation/{name}/revoke", json=REASON).raise_for_status()
    action = action_of(ask, first["action_id"])
    assert (action["decision"], action["attestation_id"]) == ("APPROVED", name)
    assert (action["attestation"], action["verified_query"]) == (None, None)
    again = ask.send(body, {"Idempotency-Key": "again"}).json()
    assert again == {key: value for key, value in first.items() if key not in ("attestation", "verified_query")}


@spec("7.1")
def test_what_was_done_before_the_attestation_was_revoked_can_still_be_told(
    keyholders: Keyholders, ask: AgentConversation
) -> None:
    answer = ask(SUM, 1, options=ATTESTED)
    keyholders.owner.post(f"/attestation/{_name(answer['attestation'])}/revoke", json=REASON).raise_for_status()
    report = {"success": True, "attestation": answer["attestation"]}
    path = f"/agents/{ask.agent_id}/actions/{answer['action_id']}/execution"
    assert ask.api.post(path, json=report).json()["execution"]["success"] is True


@spec("7.1")
def test_of_those_who_revoke_at_once_one_does(keyholders: Keyholders, ask: AgentConversation) -> None:
    path = f"/attestation/{_name(_attested(ask))}/revoke"
    with ThreadPoolExecutor(8) as threads:
        statuses = list(threads.map(lambda _: keyholders.owner.post(path, json=REASON).status_code, range(8)))
    assert sorted(statuses) == [200] + [409] * 7


# Rotating


@spec("4.2", "3.4")
def test_old_attestations_hold_after_a_rotation_and_new_ones_are_signed_with_the_new_key(
    keyholders: Keyholders, ask: AgentConversation
) -> None:
    before, keys = ask(SUM, 1, options=ATTESTED), _keys(keyholders.owner)["keys"]
    rotated = keyholders.owner.post("/signing-key/rotate", json={"reason": "a year is over"})
    assert rotated.status_code == 200, rotated.text
    after = _attested(ask, 2, another(1))
    served = _keys(keyholders.owner)
    assert served["keys"][1:] == keys
    assert rotated.json() == {
        "issuer": claims_of(after)["iss"],
        "kid": served["keys"][0]["kid"],
        "keys": served["keys"],
    }
    assert claims_of(before["attestation"])["iss"] == claims_of(after)["iss"]
    for token in (before["attestation"], after):
        assert _valid(keyholders.owner, token)
        read = another_library.decode(token, KeySet.import_key_set(served), algorithms=["ES256"])
        assert read.claims == claims_of(token)
    again = _shown(keyholders.owner, _name(before["attestation"]))["attestation"]
    assert again != before["attestation"]
    assert claims_of(again) == claims_of(before["attestation"])
    assert _valid(keyholders.owner, again)
    document = keyholders.owner.get(f"/agents/{ask.agent_id}/did.json").json()
    assert [method["publicKeyJwk"] for method in document["verificationMethod"]] == served["keys"]
    assert document["assertionMethod"] == [method["id"] for method in document["verificationMethod"]]
    path = f"/agents/{ask.agent_id}/actions/{before['action_id']}/execution"
    report = {"success": True, "attestation": before["attestation"]}
    assert ask.api.post(path, json=report).status_code == 200


@spec("7.2")
def test_a_rotation_is_in_the_log_of_the_first_organisation(keyholders: Keyholders) -> None:
    kid = keyholders.owner.post("/signing-key/rotate", json={"reason": "a laptop was lost"}).json()["kid"]
    (logged,) = keyholders.owner.get("/changes", params={"limit": 1}).json()["changes"]
    assert logged["event"] == "signing_key_rotated"
    assert logged["change"] == {"about": kid, "reason": "a laptop was lost"}


@spec("8.1")
def test_only_an_owner_of_the_first_organisation_rotates_the_key(
    spec_server: SpecServer, keyholders: Keyholders
) -> None:
    before = _keys(keyholders.owner)
    with spec_server.client("foreign") as foreign:
        for client in (foreign, keyholders.approver, keyholders.member):
            assert _refusal(client.post("/signing-key/rotate", json=REASON)) == (403, "QWED-AUTH-003")
    assert _keys(keyholders.owner) == before


@spec("7.1")
def test_an_execution_is_told_with_whatever_came_with_the_decision(
    keyholders: Keyholders, ask: AgentConversation
) -> None:
    first, second = ask(SUM, 1), ask(another(1), 2)
    path = f"/agents/{ask.agent_id}/actions/{first['action_id']}/execution"
    wrong = ask.api.post(path, json={"success": True, "attestation": second["attestation"]})
    assert _refusal(wrong) == (400, "QWED-REQ-001")
    altered = {**first["attestation"], "leaf": first["attestation"]["leaf"].replace("low", "high")}
    assert _refusal(ask.api.post(path, json={"success": True, "attestation": altered})) == (400, "QWED-REQ-001")
    assert ask.api.post(path, json={"success": True, "attestation": first["attestation"]}).status_code == 200


# Chains


@spec("4.2")
def test_a_chain_links_each_attestation_to_the_one_before(keyholders: Keyholders, ask: AgentConversation) -> None:
    tokens = [_attested(ask, step, another(step), chain_id="release-7") for step in range(1, 5)]
    said = [claims_of(token)["qwed"] for token in tokens]
    assert [(each["chain_id"], each["chain_index"]) for each in said] == [("release-7", n) for n in range(4)]
    assert [each.get("previous_attestation") for each in said] == [None, *(_name(token) for token in tokens[:-1])]
    now = claims_of(tokens[-1])["iat"]
    keys = public_keys(_keys(keyholders.owner))
    assert check_chain(tokens, keys, now=now).valid
    assert all(_valid(keyholders.owner, token) for token in tokens)
    for broken in (tokens[1:], tokens[::-1], [tokens[0], tokens[2]], [*tokens, tokens[-1]]):
        assert check_chain(broken, keys, now=now).code == "QWED-ATT-008"


@spec("4.2", "2.3")
def test_an_action_that_asks_for_a_chain_is_attested_whatever_its_risk(ask: AgentConversation) -> None:
    answer = ask(SUM, 1, options={"chain_id": "low"})
    assert claims_of(answer["attestation"])["qwed"]["chain_index"] == 0


@spec("4.2")
def test_what_may_not_happen_is_no_link_of_a_chain(keyholders: Keyholders) -> None:
    ask = keyholders.create_agent()
    assert "attestation" not in ask(EMAIL, 1, options={"chain_id": "refused"})
    assert ask({"type": "calculate", "query": "1 = 2"}, 2, options={"chain_id": "refused"})["decision"] != "APPROVED"
    assert claims_of(_attested(ask, 3, chain_id="fresh"))["qwed"]["chain_index"] == 0


@spec("4.2")
def test_a_chain_is_its_organisations_own(
    spec_server: SpecServer, keyholders: Keyholders, ask: AgentConversation
) -> None:
    with spec_server.client("foreign") as foreign:
        agent = foreign.post("/agents/register", json={"name": "next door", "principal_id": "p"}).json()
        theirs = _attested(AgentConversation(foreign, agent), 1, chain_id="shared-name")
    ours = _attested(ask, 1, chain_id="shared-name")
    assert [claims_of(token)["qwed"]["chain_index"] for token in (theirs, ours)] == [0, 0]


@spec("4.2")
def test_a_chain_that_many_continue_at_once_has_neither_gap_nor_fork(keyholders: Keyholders) -> None:
    agents = [keyholders.create_agent() for _ in range(6)]

    def work(ask: AgentConversation) -> list[str]:
        return [_attested(ask, step, another(step), chain_id="busy") for step in range(1, 6)]

    with ThreadPoolExecutor(len(agents)) as threads:
        tokens = [token for made in threads.map(work, agents) for token in made]
    tokens.sort(key=lambda token: claims_of(token)["qwed"]["chain_index"])
    now = max(claims_of(token)["iat"] for token in tokens)
    assert check_chain(tokens, public_keys(_keys(keyholders.owner)), now=now).valid
    assert len(tokens) == 30


@spec("4.1")
@pytest.mark.parametrize("name", ["", "a" * 65, "a b", "a/b", "é", "a\n", 5, ["a"], {}, True])
def test_a_chain_has_a_plain_name(ask: AgentConversation, name: Any) -> None:
    answer = ask.send(
        {"action": SUM, "context": {"conversation_id": "c", "step_number": 1}, "options": {"chain_id": name}}
    )
    assert _refusal(answer) == (400, "QWED-REQ-005")
    assert ask(SUM, 1, conversation="c", options={"chain_id": "A_z-9" * 12})["decision"] == "APPROVED"


# Restarts and faults


def _owner(server: Server) -> httpx.Client:
    return httpx.Client(base_url=server.base_url, headers={"X-API-Key": server.owner_key}, timeout=60)


def _rotate_at_rest(data: Path) -> "subprocess.CompletedProcess[str]":
    command = [*_ROTATE, "--data-dir", str(data)]
    environment = {**os.environ, **chosen.environment(data)}
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False, env=environment)


def _require_one_at_a_time(data: Path) -> None:
    """Skip the test if one data directory cannot be used by two processes."""
    if chosen.store != SQLITE:
        return
    refused = _rotate_at_rest(data)
    assert (refused.returncode, refused.stdout) == (2, "")
    assert refused.stderr == f"qwed: a server runs on {data}: use POST /signing-key/rotate, or stop the server first\n"


@spec("4.2", "7.1")
def test_keys_tokens_and_revocations_outlive_a_crash(tmp_path: Path) -> None:
    data = tmp_path / "data"
    server = Server(data)
    with _owner(server) as owner:
        ask = AgentConversation(owner, owner.post("/agents/register", json={"name": "a", "principal_id": "p"}).json())
        first = _attested(ask, 1, chain_id="c")
        owner.post("/signing-key/rotate", json=REASON).raise_for_status()
        second, third = (_attested(ask, step, another(step), chain_id="c") for step in (2, 3))
        alone, revoked = (_attested(ask, step, another(step)) for step in (4, 5))
        shown = owner.post(f"/attestation/{_name(revoked)}/revoke", json=REASON).json()
        keys = _keys(owner)
        _require_one_at_a_time(data)
        server.kill()
    server = Server(data)
    with _owner(server) as owner:
        assert _keys(owner) == keys
        assert [_code(owner, token) for token in (first, second, third, alone)] == [None] * 4
        assert _code(owner, revoked) == "QWED-ATT-006"
        assert _shown(owner, _name(revoked)) == shown
        assert owner.post(f"/attestation/{_name(revoked)}/revoke", json=REASON).status_code == 409
        assert _shown(owner, _name(second))["attestation"] == second
        server.kill()
    done = _rotate_at_rest(data)
    assert done.returncode == 0, done.stderr
    assert [line.split() for line in done.stdout.splitlines()[2:]] == [[key["kid"], "retired"] for key in keys["keys"]]
    _tamper(data, "UPDATE activities SET leaf = replace(leaf, 'APPROVED', 'DENIED') WHERE attestation_id = ?", alone)
    _tamper(data, "DELETE FROM activities WHERE attestation_id = ?", second)
    server = Server(data)
    with _owner(server) as owner:
        assert _keys(owner)["keys"][1:] == keys["keys"]
        assert owner.get("/changes", params={"limit": 1}).json()["changes"][0]["event"] == "signing_key_rotated"
        found = [_code(owner, token) for token in (first, second, third, alone)]
        server.kill()
    assert found == [None, "QWED-SEC-003", "QWED-ATT-008", "QWED-SEC-003"]


def _tamper(data: Path, statement: str, token: str) -> None:
    assert StoredRows(data).change(statement, _name(token)) == 1
