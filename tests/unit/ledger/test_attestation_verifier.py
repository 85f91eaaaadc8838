"""Only a signed, unchanged token is accepted; every other one is refused with its error code (INTERFACES 4)."""

import base64
import hashlib
import hmac
import json
import random
import string
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, cast

import pytest
from cryptography.hazmat.primitives import serialization
from joserfc import jws, jwt
from joserfc.errors import JoseError
from joserfc.jwk import ECKey, KeySet

from qwed.ledger.attestation_verifier import CheckedAttestation, check_attestation, check_chain
from qwed.ledger.verifier import InvalidEvidenceError, read_head
from tests.support.campaign_table import Figure, campaign
from tests.support.log_builder import LOG_ID, NODE, NOW, ORDER, LogSigner, b64, claims, text, unb64

ROWS = [json.loads(line) for line in (Path(__file__).parents[2] / "data" / "tokens.jsonl").read_text().splitlines()]
TYPE = "qwed-attestation+jwt"
STRANGER = LogSigner(2)
MOMENT = NOW + 100
TOKEN = NODE.attest(claims())
HEADER, PAYLOAD, SIGNATURE = TOKEN.split(".")


def check(token: Any, **options: Any) -> CheckedAttestation:
    """Check a token 100 seconds after it was issued."""
    checked = check_attestation(token, NODE.keys, **{"now": MOMENT, **options})
    assert checked.valid == (checked.code is None)
    assert checked.message.isprintable()
    assert len(checked.message) < 200
    return checked


def code(token: Any, **options: Any) -> str | None:
    result = check(token, **options).code
    return None if result is None else result.removeprefix("QWED-ATT-")


def changed(row: dict[str, Any]) -> dict[str, Any]:
    """Return the claims of an honest attestation with the changes of a row."""
    dropped = dict.fromkeys(row.get("without", ()), ...)
    members = {**row.get("claims", {}), **dropped}
    return claims(**{name.replace(".", "__"): value for name, value in members.items()})


def signed(row: dict[str, Any]) -> str:
    """Sign a token with the node's own key, with the header and the claims of the row."""
    header = {**row.get("header", {}), **dict.fromkeys(row.get("without_header", ()), ...)}
    return NODE.sign(TYPE, row.get("payload", text(changed(row))).encode(), **header)


@pytest.mark.parametrize("row", ROWS, ids=lambda row: ascii(row["what"])[1:-1])
def test_what_our_own_key_signed_is_believed_or_refused_for_its_reason(row: dict[str, Any]) -> None:
    checked = check(signed(row))
    assert checked.code == row["code"], checked.message
    unproven = ("QWED-ATT-001", "QWED-ATT-003")
    assert (checked.claims is None) == (row["code"] in unproven)
    if row["code"] is None:
        assert checked.claims == changed(row)


# Tokens that our key did not sign


def hmac_token(secret: bytes, algorithm: str, **header: Any) -> str:
    """Return a token signed by HMAC with the public key as the secret."""
    start = NODE.sign(TYPE, text(claims(jti="att_forged")).encode(), **{"alg": algorithm, **header}).rpartition(".")[0]
    return f"{start}.{b64(hmac.new(secret, start.encode(), hashlib.sha256).digest())}"


def public_secrets() -> list[bytes]:
    key, encoding, form = NODE.key.public_key(), serialization.Encoding, serialization.PublicFormat
    return [
        key.public_bytes(encoding.PEM, form.SubjectPublicKeyInfo),
        key.public_bytes(encoding.PEM, form.SubjectPublicKeyInfo).strip(),
        key.public_bytes(encoding.DER, form.SubjectPublicKeyInfo),
        key.public_bytes(encoding.X962, form.UncompressedPoint),
        key.public_bytes(encoding.X962, form.CompressedPoint),
        text(NODE.jwk).encode(),
        NODE.jwk["x"].encode(),
        NODE.kid.encode(),
        b"",
    ]


@pytest.mark.parametrize("secret", public_secrets(), ids=range(len(public_secrets())))
def test_the_public_key_is_no_shared_secret(secret: bytes) -> None:
    assert code(hmac_token(secret, "HS256")) == "001"
    assert code(hmac_token(secret, "ES256")) == "003"


def forged(**header: Any) -> str:
    """Return a token signed with an attacker's key."""
    return STRANGER.sign(TYPE, text(claims(jti="att_forged")).encode(), **header)


def number(value: int) -> bytes:
    return value.to_bytes(32)


def der(signature: bytes) -> bytes:
    r, s = (signature[at : at + 32].lstrip(b"\0") for at in (0, 32))
    parts = b"".join(b"\x02" + bytes([len(part)]) + part for part in (b"\0" + r, b"\0" + s))
    return b"\x30" + bytes([len(parts)]) + parts


RAW = unb64(SIGNATURE)
R, S = int.from_bytes(RAW[:32]), int.from_bytes(RAW[32:])
SIGNATURES: dict[str, bytes] = {
    "none": b"",
    "zeros": bytes(64),
    "r zero": bytes(32) + RAW[32:],
    "s zero": RAW[:32] + bytes(32),
    "r the order": number(ORDER) + RAW[32:],
    "s the order": RAW[:32] + number(ORDER),
    "r beyond the order": number(R + ORDER if R + ORDER < 2**256 else 2**256 - 1) + RAW[32:],
    "s beyond the order": RAW[:32] + b"\xff" * 32,
    "one and one": number(1) + number(1),
    "r and s swapped": RAW[32:] + RAW[:32],
    "r negated": number(ORDER - R) + RAW[32:],
    "half": RAW[:32],
    "a byte less": RAW[:-1],
    "a byte more": RAW + b"\0",
    "a byte before": b"\0" + RAW,
    "twice": RAW + RAW,
    "DER": der(RAW),
    "longer numbers": number(R).rjust(48, b"\0") + number(S).rjust(48, b"\0"),
    "of another token": unb64(NODE.attest(claims(jti="att_2")).rpartition(".")[2]),
    "of a head": unb64(NODE.head(9, bytes(32))["signature"].rpartition(".")[2]),
    "of the payload alone": NODE.signature(PAYLOAD.encode()),
    "of the claims as text": NODE.signature(text(claims()).encode()),
    "of a stranger": STRANGER.signature(f"{HEADER}.{PAYLOAD}".encode()),
}


@pytest.mark.parametrize("name", SIGNATURES)
def test_any_other_signature_is_refused(name: str) -> None:
    assert code(f"{HEADER}.{PAYLOAD}.{b64(SIGNATURES[name])}") == "003"


def test_s_may_be_negated_as_the_rfc_has_it_so_that_only_jti_names_an_attestation() -> None:
    """RFC 7518 makes no choice between s and n - s, and signers give either."""
    twin = f"{HEADER}.{PAYLOAD}.{b64(number(R) + number(ORDER - S))}"
    assert twin != TOKEN
    assert check(twin) == check(TOKEN)
    assert jwt.decode(twin, key_set(NODE), algorithms=["ES256"]).claims == claims()


FORGED: dict[str, tuple[Any, str]] = {
    "a stranger under its own kid": (forged(), "003"),
    "a stranger under our kid": (forged(kid=NODE.kid), "003"),
    "a key in the header": (forged(jwk=STRANGER.jwk), "001"),
    "a key in the header under our kid": (forged(kid=NODE.kid, jwk=STRANGER.jwk), "001"),
    "a key elsewhere": (forged(jku="https://attacker.example/jwks.json"), "001"),
    "a certificate elsewhere": (forged(x5u="https://attacker.example/key.pem"), "001"),
    "no algorithm and no signature": (f"{b64(text({'alg': 'none'}).encode())}.{PAYLOAD}.", "001"),
    "no algorithm, and our kid": (
        f"{b64(text({'alg': 'none', 'kid': NODE.kid, 'typ': TYPE}).encode())}.{PAYLOAD}.",
        "001",
    ),
    "our header without a signature": (f"{HEADER}.{PAYLOAD}.", "003"),
    "a head": (NODE.head(9, bytes(32))["signature"], "001"),
    "a head that says it is an attestation": (
        NODE.sign(TYPE, text({"log_id": LOG_ID, "root": "0" * 64, "size": 1, "time": "x"}).encode()),
        "007",
    ),
    "other claims": (f"{HEADER}.{b64(text(claims(jti='att_2')).encode())}.{SIGNATURE}", "003"),
    "two segments": (f"{HEADER}.{PAYLOAD}", "001"),
    "four segments": (f"{TOKEN}.", "001"),
    "five segments": (f"{TOKEN}.x.y", "001"),
    "segments swapped": (f"{PAYLOAD}.{HEADER}.{SIGNATURE}", "001"),
    "segments turned": (f"{SIGNATURE}.{HEADER}.{PAYLOAD}", "001"),
    "only dots": ("..", "001"),
    "nothing": ("", "001"),
    "padding": (f"{HEADER}.{PAYLOAD}.{SIGNATURE}==", "001"),
    "padding in the header": (f"{HEADER}=.{PAYLOAD}.{SIGNATURE}", "001"),
    "a space before": (f" {TOKEN}", "001"),
    "a space behind": (f"{TOKEN} ", "001"),
    "a line break behind": (f"{TOKEN}\n", "001"),
    "a line break inside": (f"{TOKEN[:60]}\n{TOKEN[60:]}", "001"),
    "a scheme before": (f"Bearer {TOKEN}", "001"),
    "another alphabet": (f"{HEADER}.{PAYLOAD}.{base64.b64encode(b'?>' * 32).decode().rstrip('=')}", "001"),
    "full-width letters": (TOKEN.translate({ord("e"): "\uff45"}), "001"),
    "Cyrillic letters": (TOKEN.translate({ord("a"): "\u0430"}), "001"),
    "full stops of another script": (TOKEN.replace(".", "。"), "001"),
    "half a character": (f"\ud800{TOKEN}", "001"),
    "a NUL": (f"{TOKEN}\0", "001"),
    "lower case": (TOKEN.lower(), "001"),
    "more than eight kibibytes": (f"{HEADER}.{b64(b' ' * 9000)}.{SIGNATURE}", "001"),
    "a mebibyte of dots": ("." * 2**20, "001"),
    "bytes": (TOKEN.encode(), "001"),
    "a receipt": ({"index": 0}, "001"),
    "a number": (7, "001"),
    "no token": (None, "001"),
    "JSON serialisation": (text({"protected": HEADER, "payload": PAYLOAD, "signature": SIGNATURE}), "001"),
}


@pytest.mark.parametrize("name", FORGED)
def test_what_was_never_signed_is_refused_for_its_reason(name: str) -> None:
    token, expected = FORGED[name]
    checked = check(token)
    assert checked.code == f"QWED-ATT-{expected}", checked.message
    assert checked.claims is None or expected == "007"


def test_an_attestation_is_no_head() -> None:
    claims_ = {"log_id": LOG_ID, "root": "0" * 64, "size": 1, "time": "2026-01-01T00:00:00Z"}
    for token in (TOKEN, NODE.attest(claims_)):
        with pytest.raises(InvalidEvidenceError) as refused:
            read_head({**claims_, "signature": token}, NODE.keys)
        assert refused.value.code == "QWED-ATT-001"


# Changed in every place


def expected_code(token: str) -> str:
    """Return the expected error code, computed without the verifier: a segment cannot be parsed, or the key or
    signature is wrong."""
    segments = token.split(".")
    try:
        raw = [
            base64.b64decode(segment + "=" * (-len(segment) % 4), altchars=b"-_", validate=True) for segment in segments
        ]
        header, payload = (
            json.loads(segment.decode(), parse_constant=int, object_pairs_hook=once) for segment in raw[:2]
        )
    except ValueError:
        return "001"
    canonical = [b64(segment) for segment in raw] == segments
    is_known = isinstance(header, dict) and set(header) == {"alg", "kid", "typ"}
    honest = is_known and (header["alg"], header["typ"], type(header["kid"])) == ("ES256", TYPE, str)
    return "003" if canonical and len(segments) == 3 and honest and isinstance(payload, dict) else "001"


def once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    if len({name for name, _ in pairs}) < len(pairs):
        raise ValueError("a name stands there twice")
    return dict(pairs)


def byte_changes(alternatives: int) -> Iterator[str]:
    """Yield the token with each character replaced by several others."""
    alphabet = string.ascii_letters + string.digits + "-_.=+/ \n\0é"
    for position, was in enumerate(TOKEN):
        others = [character for character in alphabet if character != was]
        start = position * 7
        for step in range(alternatives):
            yield TOKEN[:position] + others[(start + step * 11) % len(others)] + TOKEN[position + 1 :]


def manglings(count: int) -> Iterator[str]:
    """Yield the token cut, doubled, reversed, shuffled, spliced with other tokens and with random noise."""
    chance = random.Random(count)
    others = [
        NODE.attest(claims(jti="att_2")),
        forged(),
        NODE.head(9, bytes(32))["signature"],
        hmac_token(b"", "HS256"),
    ]
    ways: list[Callable[[str, int, int], str]] = [
        lambda token, a, b: token[:a] + token[b:],
        lambda token, a, b: token[:b] + token[a:],
        lambda token, a, b: token[:a] + token[a:b][::-1] + token[b:],
        lambda token, a, b: token[:a] + chance.choice(others)[a:b] + token[b:],
        lambda token, a, b: token[:a] + "".join(chance.sample(token[a:b], b - a)) + token[b:],
        lambda token, a, b: token[:a] + token[a:b].swapcase() + token[b:],
        lambda token, _a, _b: ".".join(chance.choice([token, *others]).split(".")[at] for at in range(3)),
        lambda token, a, _b: token[:a],
        lambda token, a, _b: (
            token[:a] + chr(chance.choice([chance.randrange(128), chance.randrange(0x3000)])) + token[a:]
        ),
    ]
    total = 0
    while total < count:
        a, b = sorted((chance.randrange(len(TOKEN)), chance.randrange(len(TOKEN))))
        mangled = chance.choice(ways)(TOKEN, a, b)
        if mangled not in (TOKEN, others[0]):
            total += 1
            yield mangled


def require_refused(tokens: Iterator[str]) -> Counter[str]:
    """Assert that each token is refused with its expected code; return the counts per code."""
    counts: Counter[str] = Counter()
    for token in tokens:
        checked = check_attestation(token, NODE.keys, now=MOMENT)
        assert (checked.valid, checked.claims) == (False, None), token
        assert checked.code == f"QWED-ATT-{expected_code(token)}", (token, checked.message)
        counts[str(checked.code)] += 1
    return counts


def test_the_token_with_any_character_changed_is_refused_for_its_reason() -> None:
    counts = require_refused(byte_changes(18))
    assert counts.total() >= 14_000
    assert min(counts.values()) > 1000


def test_six_thousand_mangled_tokens_are_refused_for_their_reasons() -> None:
    assert require_refused(manglings(6000)).total() == 6000


@pytest.mark.drill
@campaign("P5", "changed attestations")
def test_a_hundred_thousand_changed_and_mangled_tokens_are_refused_for_their_reasons(figure: Figure) -> None:
    refused = require_refused(byte_changes(71)).total() + require_refused(manglings(45_000)).total()
    figure("changed tokens refused", refused)
    assert refused > 100_000


# Issuers, validity and revocation


def test_only_the_issuers_that_are_named_are_trusted() -> None:
    assert code(TOKEN, trusted_issuers=[NODE.issuer]) is None
    assert code(TOKEN, trusted_issuers={"did:qwed:node:x", NODE.issuer}) is None
    assert code(TOKEN, trusted_issuers=["did:qwed:node:x"]) == "002"
    assert code(TOKEN, trusted_issuers=[]) == "002"
    assert code(TOKEN, trusted_issuers=NODE.issuer + "x") == "002"


def test_leeway_is_given_on_both_sides() -> None:
    assert [code(TOKEN, now=NOW + 86_400, leeway=leeway) for leeway in (0, 1)] == ["004", None]
    assert [code(TOKEN, now=NOW - 1, leeway=leeway) for leeway in (0, 1)] == ["005", None]
    assert [code(TOKEN, now=moment) for moment in (NOW - 0.5, NOW, NOW + 86_399.5)] == ["005", None, None]


@pytest.mark.parametrize("moment", [float("nan"), float("inf"), -float("inf")])
def test_a_clock_that_shows_no_time_believes_nothing(moment: float) -> None:
    assert code(TOKEN, now=moment) in ("004", "005")


def test_what_was_revoked_is_refused_and_asked_about_last_but_one() -> None:
    queried: list[str] = []

    def is_revoked(jti: str) -> bool:
        queried.append(jti)
        return True

    assert code(TOKEN, is_revoked=is_revoked) == "006"
    assert code(NODE.attest(claims(qwed__chain_index=0)), is_revoked=is_revoked) == "006"
    assert code(TOKEN, is_revoked=is_revoked, now=NOW - 1) == "005"
    assert code(forged(), is_revoked=is_revoked) == "003"
    assert queried == ["att_1", "att_1"]


def test_keys_rotate_and_old_attestations_stay_good() -> None:
    keys = {**STRANGER.keys, **NODE.keys}
    assert check_attestation(TOKEN, keys, now=MOMENT).valid
    assert check_attestation(forged(), keys, now=MOMENT).valid
    assert check_attestation(TOKEN, {}, now=MOMENT).code == "QWED-ATT-003"


# Chains


def link(index: int, *, chain: str = "chain_1", **members: Any) -> str:
    previous = {"qwed__previous_attestation": f"att_{index - 1}"} if index else {}
    own = {"jti": f"att_{index}", "qwed__chain_id": chain, "qwed__chain_index": index, **previous}
    return NODE.attest(claims(**{**own, **members}))


CHAIN = [link(index) for index in range(5)]


@pytest.mark.parametrize("length", range(1, 6))
def test_a_chain_holds_from_its_beginning_to_any_of_its_links(length: int) -> None:
    checked = check_chain(CHAIN[:length], NODE.keys, now=MOMENT)
    assert (checked.valid, checked.code) == (True, None)
    assert checked.claims is not None
    assert checked.claims["jti"] == f"att_{length - 1}"


BROKEN: dict[str, tuple[list[str], str, int]] = {
    "nothing": ([], "008", -1),
    "no beginning": (CHAIN[1:], "008", 0),
    "a gap": ([*CHAIN[:2], *CHAIN[3:]], "008", 2),
    "another order": ([CHAIN[0], CHAIN[2], CHAIN[1], *CHAIN[3:]], "008", 1),
    "one twice": ([*CHAIN[:2], *CHAIN[1:]], "008", 2),
    "one of another chain": ([*CHAIN[:2], link(2, chain="chain_2"), *CHAIN[3:]], "008", 2),
    "one about another before it": ([*CHAIN[:2], link(2, qwed__previous_attestation="att_0"), *CHAIN[3:]], "008", 2),
    "one put in the place of another": ([*CHAIN[:2], link(2, jti="att_x"), *CHAIN[3:]], "008", 3),
    "one that is free": ([*CHAIN[:2], TOKEN, *CHAIN[2:]], "008", 2),
    "a free one alone": ([TOKEN], "008", 0),
    "one that contradicts itself": ([*CHAIN[:2], link(2, qwed__previous_attestation=...)], "008", 2),
    "one that was changed": ([*CHAIN[:2], CHAIN[2][:-6] + "AAAAAA", *CHAIN[3:]], "003", 2),
    "one that expired": ([*CHAIN[:2], link(2, exp=NOW), *CHAIN[3:]], "004", 2),
    "one of a stranger": ([*CHAIN[:2], forged(), *CHAIN[3:]], "003", 2),
    "one that is no token": ([*CHAIN[:2], "x", *CHAIN[3:]], "001", 2),
}


@pytest.mark.parametrize("name", BROKEN)
def test_a_broken_chain_is_refused_where_it_breaks(name: str) -> None:
    tokens, expected, at = BROKEN[name]
    checked = check_chain(tokens, NODE.keys, now=MOMENT)
    assert (checked.valid, checked.code) == (False, f"QWED-ATT-{expected}")
    assert at < 0 or checked.message.startswith(f"attestation {at}")


def test_a_chain_is_held_to_the_same_options_as_each_of_its_links() -> None:
    def options(**given: Any) -> str | None:
        return check_chain(CHAIN, NODE.keys, **{"now": MOMENT, **given}).code

    assert options(trusted_issuers=[NODE.issuer]) is None
    assert options(trusted_issuers=["did:qwed:node:x"]) == "QWED-ATT-002"
    assert options(is_revoked=lambda jti: jti == "att_3") == "QWED-ATT-006"
    assert options(now=NOW - 1) == "QWED-ATT-005"
    assert options(now=NOW - 1, leeway=1) is None


# Another library


def key_set(*nodes: LogSigner) -> KeySet:
    return KeySet([ECKey.import_key(dict(node.jwk)) for node in nodes])


def others_accept(token: str) -> bool:
    try:
        read = jwt.decode(token, key_set(NODE), algorithms=["ES256"])
        jwt.JWTClaimsRegistry(now=lambda: MOMENT, exp={"essential": True}).validate(read.claims)
    except (JoseError, ValueError):
        return False
    return True


def test_another_library_reads_the_same_claims_from_the_same_jwks() -> None:
    read = jwt.decode(TOKEN, KeySet.import_key_set(cast(Any, NODE.jwks)), algorithms=["ES256"])
    assert read.claims == check(TOKEN).claims == claims()
    assert read.header == {"alg": "ES256", "kid": NODE.kid, "typ": TYPE}
    assert ECKey.import_key(dict(NODE.jwk)).thumbprint() == NODE.kid


def test_what_another_library_signs_with_our_key_is_believed() -> None:
    pem = NODE.key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    key = ECKey.import_key(pem)
    for number_ in range(20):
        signed_claims = claims(jti=f"att_{number_}")
        header = {"typ": TYPE, "kid": NODE.kid, "alg": "ES256"}
        assert check(jws.serialize_compact(header, json.dumps(signed_claims), key, ["ES256"])).claims == signed_claims


@pytest.mark.parametrize(
    "name",
    [
        "a stranger under our kid",
        "no algorithm and no signature",
        "no algorithm, and our kid",
        "our header without a signature",
        "other claims",
        "two segments",
        "nothing",
    ],
)
def test_another_library_refuses_what_we_refuse(name: str) -> None:
    assert others_accept(TOKEN)
    assert not others_accept(FORGED[name][0])


@pytest.mark.parametrize(
    "name", ["none", "zeros", "half", "DER", "of another token", "of a stranger", "r and s swapped"]
)
def test_another_library_refuses_the_signatures_that_we_refuse(name: str) -> None:
    assert not others_accept(f"{HEADER}.{PAYLOAD}.{b64(SIGNATURES[name])}")


def test_another_library_refuses_what_is_too_old_or_signed_with_the_public_key() -> None:
    assert not others_accept(NODE.attest(claims(exp=NOW)))
    assert not any(others_accept(hmac_token(secret, "HS256")) for secret in public_secrets())
