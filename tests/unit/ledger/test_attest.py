"""INTERFACES 4: attestations are ES256 JWTs that anyone can check with the published keys alone."""

from typing import Any

import msgspec
import pytest
from joserfc import jwt
from joserfc.errors import BadSignatureError, InvalidKeyIdError
from joserfc.jwk import KeySet

from qwed.ledger.attest import AttestationExtras, Chain, Receipt, Signer
from qwed.ledger.attestation_verifier import check_attestation, check_chain, check_receipt
from qwed.ledger.keyring import fresh_keyring
from qwed.ledger.leaf import Leaf, encode
from qwed.ledger.sequencer import Head, Sequencer
from qwed.ledger.verifier import public_keys
from tests.support.manual_clock import ManualClock

NOW = 1_790_000_000
LEAF = Leaf(
    activity_id="act_1",
    agent_id="agent_1",
    attestation_id="att_1",
    by="key_1",
    commitment="c" * 64,
    decision="APPROVED",
    engine="math",
    latency_us=10,
    policy_hash="b" * 64,
    risk_level="low",
    status="VERIFIED",
    time_ms=NOW * 1000 + 123,
    v=2,
)
SUB = "sha256:" + "a" * 64
STATED = AttestationExtras(SUB)
HEAD = Head(log_id="org_1", size=9, root="d" * 64, time="2026-09-21T12:00:00Z", signature="not looked at")


def _signer(**options: Any) -> Signer:
    return Signer(fresh_keyring(), **options)


def _read(token: str, signer: Signer) -> jwt.Token:
    """Verify a token with another library and the published keys."""
    keys: Any = {"keys": signer.keyring.public_jwks()}
    return jwt.decode(token, KeySet.import_key_set(keys), algorithms=["ES256"])


def _keys(signer: Signer) -> Any:
    return public_keys({"keys": signer.keyring.public_jwks()})


def test_a_stranger_can_check_an_attestation_with_the_published_key() -> None:
    signer = _signer(ttl_seconds=60)
    token = _read(signer.attest(LEAF, STATED, 7, HEAD), signer)
    assert token.header == {"alg": "ES256", "kid": signer.keyring.current.kid, "typ": "qwed-attestation+jwt"}
    assert token.claims == {
        "iss": signer.keyring.issuer,
        "sub": SUB,
        "iat": NOW,
        "exp": NOW + 60,
        "jti": "att_1",
        "qwed": {
            "version": "1.0",
            "result": {"status": "VERIFIED", "verified": True, "engine": "math", "confidence": 1},
            "decision": "APPROVED",
            "risk_level": "low",
            "agent_id": "agent_1",
            "activity_id": "act_1",
            "policy_hash": "b" * 64,
            "log": {"index": 7, "size": 9, "root": "d" * 64},
        },
    }


def test_our_own_verifier_says_the_same() -> None:
    signer = _signer()
    result = check_attestation(signer.attest(LEAF, STATED, 7, HEAD), _keys(signer), now=NOW + 1)
    assert (result.valid, result.code) == (True, None)
    assert result.claims is not None
    assert result.claims["jti"] == "att_1"


def test_the_same_activity_is_attested_with_the_same_bytes_every_time() -> None:
    signer = _signer()
    assert len({signer.attest(LEAF, STATED, 7, HEAD) for _ in range(5)}) == 1
    assert signer.attest(LEAF, STATED, 7, HEAD) != signer.attest(LEAF, STATED, 8, HEAD)


def test_another_key_or_a_changed_word_does_not_verify() -> None:
    signer, other = _signer(), _signer()
    token = signer.attest(LEAF, STATED, 7, HEAD)
    with pytest.raises(InvalidKeyIdError):
        _read(token, other)
    header, body, signature = token.split(".")
    forged = signer.attest(LEAF, STATED, 8, HEAD).split(".")[1]
    assert forged != body
    with pytest.raises(BadSignatureError):
        _read(f"{header}.{forged}.{signature}", signer)
    assert not check_attestation(f"{header}.{forged}.{signature}", _keys(signer), now=NOW).valid


def test_after_a_rotation_old_tokens_hold_and_new_ones_name_the_new_key_and_the_old_issuer() -> None:
    signer = _signer()
    issuer, before = signer.keyring.issuer, signer.attest(LEAF, STATED, 7, HEAD)
    signer.keyring.rotate()
    after = signer.attest(LEAF, STATED, 7, HEAD)
    read = [_read(token, signer) for token in (before, after)]
    assert read[0].claims == read[1].claims
    assert read[0].claims["iss"] == issuer
    assert [token.header["kid"] for token in read] == [jwk["kid"] for jwk in signer.keyring.public_jwks()][::-1]


@pytest.mark.parametrize("status", ["UNCERTAIN", "FAILED", "BLOCKED", "ERROR", None])
def test_what_was_not_verified_is_not_attested_as_verified(status: str | None) -> None:
    signer = _signer()
    token = _read(signer.attest(msgspec.structs.replace(LEAF, status=status), STATED, 0, HEAD), signer)
    assert (token.claims["qwed"]["result"]["verified"], token.claims["qwed"]["result"]["confidence"]) == (False, 0)


def test_what_a_person_permitted_is_attested_under_the_action_that_asked() -> None:
    signer = _signer()
    approved = msgspec.structs.replace(LEAF, activity_id="act_2", about="act_1")
    assert _read(signer.attest(approved, STATED, 0, HEAD), signer).claims["qwed"]["activity_id"] == "act_1"


def test_the_links_of_a_chain_are_stated_and_checked() -> None:
    signer = _signer()
    links = [
        Chain(id="ch", index=0),
        Chain(id="ch", index=1, previous="att_0"),
        Chain(id="ch", index=2, previous="att_1"),
    ]
    tokens = [
        signer.attest(
            msgspec.structs.replace(LEAF, attestation_id=f"att_{link.index}"), AttestationExtras(SUB, link), 7, HEAD
        )
        for link in links
    ]
    first, second, _third = (_read(token, signer).claims["qwed"] for token in tokens)
    assert (first["chain_id"], first["chain_index"], "previous_attestation" in first) == ("ch", 0, False)
    assert (second["chain_index"], second["previous_attestation"]) == (1, "att_0")
    assert check_chain(tokens, _keys(signer), now=NOW).valid
    for broken in (tokens[1:], tokens[::-1], [tokens[0], tokens[2]]):
        assert check_chain(broken, _keys(signer), now=NOW).code == "QWED-ATT-008"


def test_a_receipt_is_the_leaf_its_path_and_the_head_it_leads_to() -> None:
    keyring = fresh_keyring()
    texts = [encode(msgspec.structs.replace(LEAF, activity_id=f"act_{number}")).decode() for number in range(5)]
    grown = Sequencer(keyring, ManualClock().clock()).integrate(
        [("org_1", index, text) for index, text in enumerate(texts)], lambda *_: ([], None)
    )
    for index, text in enumerate(texts):
        placed = grown.position("org_1", index)
        receipt = msgspec.to_builtins(Receipt(index=index, leaf=text, path=placed.path(), head=placed.head))
        result = check_receipt(receipt, keyring.public_keys())
        assert (result.valid, result.claims) == (True, msgspec.json.decode(text))
        assert not check_receipt({**receipt, "index": (index + 1) % 5}, keyring.public_keys()).valid
