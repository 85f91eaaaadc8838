"""INTERFACES 4: attestations are ES256 JWTs that anyone can check with the published key alone."""

import json
from pathlib import Path
from typing import Any

import msgspec
import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec, ed25519
from joserfc import jws, jwt
from joserfc.errors import BadSignatureError
from joserfc.jwk import ECKey

from qwed.ledger.attest import KEY_FILE, Signer, fresh_key, key_from
from qwed.ledger.leaf import Leaf

LEAF = Leaf(
    activity_id="act_1",
    agent_id="agent_1",
    attestation_id="att_1",
    by="key_1",
    decision="APPROVED",
    engine="math",
    latency_us=10,
    policy_hash="p" * 64,
    risk_level="low",
    status="VERIFIED",
    sub="sha256:" + "a" * 64,
    time_ms=1_790_000_000_123,
    v=1,
)


def _read(token: str, signer: Signer) -> jwt.Token:
    return jwt.decode(token, ECKey.import_key(_public(signer)), algorithms=["ES256"])


def _public(signer: Signer) -> Any:
    return dict(signer.jwk)


def test_a_stranger_can_check_an_attestation_with_the_published_key() -> None:
    signer = Signer(fresh_key(), ttl_seconds=60)
    token = _read(signer.attest(LEAF, 7), signer)
    assert token.header == {"alg": "ES256", "kid": signer.kid, "typ": "qwed-attestation+jwt"}
    assert {name: token.claims[name] for name in ("iss", "sub", "iat", "exp", "jti")} == {
        "iss": signer.issuer,
        "sub": LEAF.sub,
        "iat": 1_790_000_000,
        "exp": 1_790_000_060,
        "jti": "att_1",
    }
    assert token.claims["qwed"]["result"] == {"status": "VERIFIED", "verified": True, "engine": "math", "confidence": 1}
    assert token.claims["qwed"]["log"]["index"] == 7
    assert token.claims["qwed"]["activity_id"] == "act_1"


def test_the_same_activity_is_attested_with_the_same_bytes_every_time() -> None:
    signer = Signer(fresh_key())
    assert len({signer.attest(LEAF, 7) for _ in range(5)}) == 1
    assert signer.attest(LEAF, 7) != signer.attest(LEAF, 8)


def test_another_key_or_a_changed_word_does_not_verify() -> None:
    signer, other = Signer(fresh_key()), Signer(fresh_key())
    token = signer.attest(LEAF, 7)
    with pytest.raises(BadSignatureError):
        _read(token, other)
    header, body, signature = token.split(".")
    forged = other.attest(LEAF, 7).split(".")[1]
    assert forged != body
    with pytest.raises(BadSignatureError):
        jws.deserialize_compact(f"{header}.{forged}.{signature}", ECKey.import_key(_public(signer)), ["ES256"])


@pytest.mark.parametrize("status", ["UNCERTAIN", "FAILED", "BLOCKED", "ERROR", None])
def test_what_was_not_verified_is_not_attested_as_verified(status: str | None) -> None:
    signer = Signer(fresh_key())
    token = _read(signer.attest(msgspec.structs.replace(LEAF, status=status), 0), signer)
    assert (token.claims["qwed"]["result"]["verified"], token.claims["qwed"]["result"]["confidence"]) == (False, 0)


def test_the_published_key_holds_nothing_private_and_is_named_by_its_thumbprint() -> None:
    signer = Signer(fresh_key())
    assert set(signer.jwk) == {"crv", "kty", "x", "y", "alg", "use", "kid"}
    assert signer.kid == ECKey.import_key({name: signer.jwk[name] for name in ("crv", "kty", "x", "y")}).thumbprint()
    assert signer.issuer.startswith("did:qwed:node:")
    assert json.dumps(signer.jwk).isascii()


def test_a_key_is_made_once_and_kept(tmp_path: Path) -> None:
    file = tmp_path / "deep" / KEY_FILE
    first, second = Signer(key_from(file)), Signer(key_from(file))
    assert first.kid == second.kid
    assert file.stat().st_mode & 0o777 == 0o600
    assert [found.name for found in file.parent.iterdir()] == [KEY_FILE]


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o666])
def test_a_key_that_others_can_read_is_refused(tmp_path: Path, mode: int) -> None:
    file = tmp_path / KEY_FILE
    key_from(file)
    file.chmod(mode)
    with pytest.raises(PermissionError, match=f"mode {mode:o}"):
        key_from(file)


def _pem(key: Any) -> bytes:
    made: bytes = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    return made


@pytest.mark.parametrize(
    "content",
    [b"", b"half a", _pem(ec.generate_private_key(ec.SECP384R1())), _pem(ed25519.Ed25519PrivateKey.generate())],
    ids=["empty", "half", "another curve", "another kind"],
)
def test_a_file_that_holds_no_p256_key_is_refused_and_left_alone(tmp_path: Path, content: bytes) -> None:
    file = tmp_path / KEY_FILE
    file.write_bytes(content)
    file.chmod(0o600)
    with pytest.raises(ValueError, match=r"."):
        key_from(file)
    assert file.read_bytes() == content
