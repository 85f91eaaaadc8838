"""Attestations of messages (INTERFACES 6): only the signed token is valid; others are refused for a reason."""

import base64
import json
import time
from typing import Any

import pytest
from joserfc import jwt as independent
from joserfc.jwk import KeySet

from qwed.ledger.attestation_verifier import UNREAD, check_attestation
from qwed.ledger.keyring import Keyring, fresh_keyring
from qwed.model import canonical
from qwed_a2a import EngineName, VerdictStatus, verify_attestation
from qwed_a2a.attestation import TYPE, ephemeral_keyring, sign

NOW = 1_790_000_000
SIGNER, OTHER_SIGNER = ephemeral_keyring(), ephemeral_keyring()
JWKS = {"keys": SIGNER.public_jwks()}
DIGEST = "ab" * 32


def token(signer: Keyring = SIGNER, **more: Any) -> str:
    fields: dict[str, Any] = {
        "digest": DIGEST,
        "trace_id": "a2a_0123456789ab",
        "at": NOW + 0.75,
        "status": VerdictStatus.FORWARDED,
        "engine": EngineName.FINANCE_GUARD,
        "sender": "buyer",
        "receiver": "seller",
    }
    return sign(signer, **{**fields, **more})


CLAIMS: dict[str, Any] = {
    "iss": SIGNER.issuer,
    "sub": f"sha256:{DIGEST}",
    "iat": NOW,
    "exp": NOW + 86_400,
    "jti": "a2a_0123456789ab",
    "qwed_a2a": {
        "version": "1.0",
        "verdict": "forwarded",
        "engine": "finance_guard",
        "sender": "buyer",
        "receiver": "seller",
    },
}


def verify(jwt: Any, now: float = NOW + 60, **more: Any) -> tuple[bool, dict[str, Any]]:
    return verify_attestation(jwt, JWKS, now=now, **more)


def code(jwt: Any, **more: Any) -> str:
    valid, answer = verify(jwt, **more)
    assert valid is False
    assert set(answer) == {"error"}
    assert answer["error"]["message"].isprintable()
    return str(answer["error"]["code"]).removeprefix("QWED-ATT-")


def signed(claims: Any, typ: str = TYPE, signer: Keyring = SIGNER) -> str:
    return signer.current.sign(typ, claims if isinstance(claims, bytes) else canonical(claims))


def without(name: str) -> dict[str, Any]:
    outer, _, inner = name.partition(".")
    others = {claim: value for claim, value in CLAIMS.items() if claim != name}
    return (
        {**others, outer: {claim: value for claim, value in CLAIMS[outer].items() if claim != inner}}
        if inner
        else others
    )


def changed(name: str, value: Any) -> dict[str, Any]:
    outer, _, inner = name.partition(".")
    return {**CLAIMS, outer: {**CLAIMS[outer], inner: value} if inner else value}


def test_what_was_signed_is_believed_and_says_what_was_decided() -> None:
    assert verify(token()) == (True, CLAIMS)


def test_the_header_says_what_it_is_and_which_key_signed() -> None:
    header = json.loads(base64.urlsafe_b64decode(token().split(".")[0] + "=="))
    assert header == {"alg": "ES256", "kid": SIGNER.current.kid, "typ": "qwed-a2a-attestation+jwt"}


def test_an_independent_library_reads_the_same() -> None:
    read = independent.decode(token(), KeySet.import_key_set(JWKS), algorithms=["ES256"])  # type: ignore[arg-type]
    assert read.claims == CLAIMS


def test_the_same_words_are_signed_with_the_same_bytes() -> None:
    assert token() == token()
    assert token(trace_id="another") != token()


def test_a_key_of_the_process_has_a_name_of_its_own() -> None:
    assert SIGNER.issuer.startswith("did:qwed:a2a:")
    assert SIGNER.issuer != OTHER_SIGNER.issuer


def test_what_a_server_signs_is_believed_too() -> None:
    node = fresh_keyring()
    valid, claims = verify_attestation(token(node), {"keys": node.public_jwks()}, now=NOW + 1)
    assert (valid, claims["iss"]) == (True, node.issuer)


def test_a_rotated_key_still_proves_what_it_signed() -> None:
    keys = ephemeral_keyring()
    old = token(keys)
    keys.rotate()
    for jwt in (old, token(keys)):
        assert verify_attestation(jwt, {"keys": keys.public_jwks()}, now=NOW + 1)[0]


NOT_TOKENS: list[Any] = [None, 7, b"a.b.c", "", "a", "a.b", "a.b.c", "a.b.c.d", "..", "\x00.\x00.\x00", "x" * 10_000]


@pytest.mark.parametrize("jwt", NOT_TOKENS)
def test_what_is_no_token_is_refused_for_its_form(jwt: Any) -> None:
    assert code(jwt) == "001"


@pytest.mark.parametrize("typ", ["qwed-attestation+jwt", "qwed-head+jwt", "JWT", "", "QWED-A2A-ATTESTATION+JWT"])
def test_a_token_of_another_type_is_refused_though_the_same_key_signed(typ: str) -> None:
    assert code(signed(CLAIMS, typ)) == "001"


def test_an_attestation_of_an_action_does_not_pass_for_one_of_a_message_nor_the_other_way_round() -> None:
    assert check_attestation(token(), SIGNER.public_keys(), now=NOW + 1).code == "QWED-ATT-001"


@pytest.mark.parametrize("alg", ["none", "HS256", "ES384", "es256", None])
def test_another_algorithm_is_refused(alg: str | None) -> None:
    header = canonical({"alg": alg, "kid": SIGNER.current.kid, "typ": TYPE})
    head = base64.urlsafe_b64encode(header).rstrip(b"=").decode()
    assert code(".".join([head, *token().split(".")[1:]])) == "001"


def test_a_header_with_more_in_it_is_refused() -> None:
    header = canonical({"alg": "ES256", "kid": SIGNER.current.kid, "typ": TYPE, "jwk": SIGNER.current.jwk})
    head = base64.urlsafe_b64encode(header).rstrip(b"=").decode()
    assert code(".".join([head, *token().split(".")[1:]])) == "001"


def test_a_key_that_is_not_known_is_refused() -> None:
    assert code(token(OTHER_SIGNER)) == "003"


def test_a_stranger_who_names_our_key_is_refused() -> None:
    parts, other = token().split("."), token(OTHER_SIGNER, trace_id="mine").split(".")
    assert code(".".join([parts[0], other[1], other[2]])) == "003"


@pytest.mark.parametrize("signature", ["", "AA", base64.urlsafe_b64encode(bytes(64)).rstrip(b"=").decode()])
def test_a_signature_that_is_none_is_refused(signature: str) -> None:
    assert code(".".join([*token().split(".")[:2], signature])) == "003"


def test_not_one_changed_character_of_the_claims_is_believed() -> None:
    head, claims, signature = token().split(".")
    for position in range(len(claims)):
        other = "A" if claims[position] != "A" else "B"
        assert code(f"{head}.{claims[:position]}{other}{claims[position + 1 :]}.{signature}") in ("001", "003")


@pytest.mark.parametrize(
    ("issuer", "trusted", "believed"),
    [
        (None, None, True),
        (None, "own", True),
        (None, ["did:qwed:a2a:other"], False),
        (None, [], False),
        (None, "did:qwed:a2a:", False),
        ("did:qwed:agent:1", None, False),
        ("https://example.com", None, False),
        ("xdid:qwed:a2a:1", None, False),
        ("https://example.com", ["https://example.com"], True),
    ],
)
def test_only_a_trusted_issuer_is_believed(issuer: str | None, trusted: Any, believed: bool) -> None:
    trusted = SIGNER.issuer if trusted == "own" else trusted
    jwt = signed(changed("iss", issuer or SIGNER.issuer))
    assert verify(jwt, trusted_issuers=trusted)[0] is believed
    assert believed or code(jwt, trusted_issuers=trusted) == "002"


@pytest.mark.parametrize(
    ("now", "expected"), [(NOW - 1, "005"), (NOW, ""), (NOW + 86_399.9, ""), (NOW + 86_400, "004"), (2.0**60, "004")]
)
def test_it_is_valid_from_its_time_for_a_day(now: float, expected: str) -> None:
    assert verify(token(), now=now)[0] if not expected else code(token(), now=now) == expected


def test_without_a_time_it_is_that_of_the_machine() -> None:
    assert verify_attestation(token(at=time.time()), JWKS)[0]
    assert verify_attestation(token(at=0), JWKS)[1]["error"]["code"] == "QWED-ATT-004"


NAMES = [*(name for name in CLAIMS if name != "qwed_a2a"), *(f"qwed_a2a.{name}" for name in CLAIMS["qwed_a2a"])]


@pytest.mark.parametrize("name", [*NAMES, "qwed_a2a"])
def test_a_claim_that_is_missing_is_named(name: str) -> None:
    jwt = signed(without(name))
    assert code(jwt) == "007"
    assert f"`{name}" in verify(jwt)[1]["error"]["message"]


NOTHING: tuple[Any, ...] = (None, [], {}, True, "")
WRONG_CLAIMS: list[tuple[str, Any]] = [
    *((name, value) for name in NAMES for value in NOTHING),
    ("sub", DIGEST),
    ("sub", f"sha256:{DIGEST.upper()}"),
    ("sub", f"sha256:{DIGEST}00"),
    ("sub", f"sha256:{DIGEST}\n"),
    ("iat", str(NOW)),
    ("iat", -1),
    ("exp", str(NOW)),
    ("qwed_a2a.version", "1.1"),
    ("qwed_a2a.version", 1),
    ("qwed_a2a.verdict", "FORWARDED"),
    ("qwed_a2a.verdict", "approved"),
    ("qwed_a2a.engine", "math"),
    ("qwed_a2a", "forwarded"),
]


@pytest.mark.parametrize(("name", "value"), WRONG_CLAIMS)
def test_a_claim_that_is_not_as_it_must_be_is_named(name: str, value: Any) -> None:
    assert code(signed(changed(name, value))) == "007"


@pytest.mark.parametrize(
    "claims",
    [
        b"[]",
        b"7",
        b"",
        b"{",
        b"\xff",
        b'{"iss":1,"iss":2}',
        canonical(CLAIMS)[:-1] + b',"x":1.5}',
        canonical(CLAIMS)[:-1] + b',"x":NaN}',
        b'{"a":' * 2000 + b"1" + b"}" * 2000,
    ],
)
def test_claims_that_are_no_plain_object_are_refused(claims: bytes) -> None:
    assert code(signed(claims)) == "001"


def test_a_payload_that_was_not_read_cannot_have_been_forwarded() -> None:
    assert verify(token(digest=UNREAD, status=VerdictStatus.BLOCKED))[1]["sub"] == UNREAD
    assert code(signed(changed("sub", UNREAD))) == "007"


@pytest.mark.parametrize("jwks", [{}, {"keys": {}}, {"keys": [{}]}, {"keys": [{**SIGNER.current.jwk, "kid": "x"}]}, []])
def test_keys_that_cannot_be_used_say_nothing_about_the_token(jwks: Any) -> None:
    with pytest.raises(ValueError, match="key"):
        verify_attestation(token(), jwks, now=NOW)


def test_the_longest_names_there_are_still_fit() -> None:
    for letter in ('"', "\\", "\U0001f600", "\u4e00"):
        jwt = token(sender=letter * 256, receiver=letter * 256, trace_id=letter * 256)
        assert verify(jwt)[0], letter


def test_a_time_before_all_times_is_signed_as_the_first_one() -> None:
    assert verify(token(at=-62_135_596_800.0), now=1.0)[1]["iat"] == 0
