"""Offline verification of attestations, chains of attestations and receipts, with public keys alone."""

import re
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, NamedTuple

from qwed.ledger.verifier import (
    InvalidEvidenceError,
    Keys,
    any_numbers,
    canonical,
    leaf_hash,
    open_jws,
    read_head,
    read_leaf,
    require,
    verify_inclusion,
)

# Patterns of members as JSON; an absent one is empty.
_TEXT, _WHOLE, _HASH = '".+"', "0|[1-9][0-9]{0,15}", '"[0-9a-f]{64}"'
ATTESTATION, ISSUER = "qwed-attestation+jwt", "did:qwed:node:"
_CLAIMS = {
    _TEXT: "iss sub jti qwed.activity_id",
    _WHOLE: "iat exp qwed.log.index qwed.log.size",
    f"({_WHOLE})?": "nbf",
    _HASH: "qwed.log.root",
    'null|".+"': "qwed.result.status qwed.result.engine qwed.decision qwed.risk_level qwed.agent_id qwed.policy_hash",
    '"1[.]0"': "qwed.version",
    "true|false": "qwed.result.verified",
    "1|1[.]0|0([.][0-9]+)?": "qwed.result.confidence",
}
# Chain, index and previous attestation: none of them, those of the first, or those of a later one.
_LINK = re.compile(r'\[(null,null,null|"[^"]+",0,null|"[^"]+",[1-9][0-9]{0,15},"[^"]+")\]')
MESSAGE = "qwed-a2a-attestation+jwt"
MESSAGE_ISSUERS = ("did:qwed:a2a:", ISSUER)
"""Prefixes of issuers that sign for messages: an interceptor in a process, and a server."""
UNREAD = "unread"
"""Replaces the payload hash in the attestation of a message that was refused before it was read."""
_ENGINES = "finance_guard logic_guard code_guard trust_boundary bypass passthrough error_handler"
_MESSAGE_CLAIMS = {
    _TEXT: "iss jti qwed_a2a.sender qwed_a2a.receiver",
    f'"(sha256:[0-9a-f]{{64}}|{UNREAD})"': "sub",
    _WHOLE: "iat exp",
    f"({_TEXT})?": "qwed_a2a.activity_id",
    '"1[.]0"': "qwed_a2a.version",
    '"(forwarded|blocked|error)"': "qwed_a2a.verdict",
    f'"({_ENGINES.replace(" ", "|")})"': "qwed_a2a.engine",
}
_RECEIPT = {_WHOLE: "index", _TEXT: "leaf", rf"\[({_HASH},?)*\]": "path", r"\{.*\}": "head"}


def first_invalid_member(value: Any, grammar: Mapping[str, str]) -> str:
    """Return the first member that is missing or does not match its pattern, or an empty string."""
    for pattern, names in grammar.items():
        for name in names.split():
            member = value
            for part in name.split("."):
                member = member.get(part, ...) if isinstance(member, Mapping) else ...
            try:
                text = "" if member is ... else canonical(member)
            except (TypeError, ValueError, RecursionError):
                return name
            if re.fullmatch(pattern, text, re.DOTALL) is None:
                return name
    return ""


class CheckedAttestation(NamedTuple):
    """Result of a check; the claims are present once their signature is verified, even if they have expired."""

    valid: bool
    claims: dict[str, Any] | None
    code: str | None
    message: str


def check_attestation(
    jwt: str,
    keys: Keys,
    *,
    now: float,
    trusted_issuers: Collection[str] | None = None,
    leeway: float = 0,
    is_revoked: Callable[[str], bool] = lambda _jti: False,
) -> CheckedAttestation:
    """Check an attestation at the time `now`."""
    claims = None
    try:
        _, claims = open_jws(jwt, ATTESTATION, keys, any_numbers)
        require(
            not (name := first_invalid_member(claims, _CLAIMS)),
            "007",
            f"its claim `{name}` is missing or not as it must be",
        )
        issuer, begin, log = claims["iss"], max(claims["iat"], claims.get("nbf", 0)), claims["qwed"]["log"]
        require(log["index"] < log["size"], "007", "its claim `qwed.log` names a leaf outside of the tree")
        trusted = issuer.startswith(ISSUER) if trusted_issuers is None else issuer in (*trusted_issuers,)
        require(trusted, "002", f"its issuer {ascii(issuer)[:80]} is not trusted")
        require(now < claims["exp"] + leeway, "004", f"it expired at {claims['exp']}")
        require(begin <= now + leeway, "005", f"it is not valid before {begin}")
        require(not is_revoked(claims["jti"]), "006", "it was revoked")
        link = [claims["qwed"].get(name) for name in ("chain_id", "chain_index", "previous_attestation")]
        require(
            _LINK.fullmatch(canonical(link)), "008", "only the first of a chain, index 0, has no previous attestation"
        )
    except InvalidEvidenceError as wrong:
        return CheckedAttestation(False, claims, wrong.code, str(wrong))
    return CheckedAttestation(True, claims, None, "it is valid")


def is_message(jwt: str) -> bool:
    """Return True if the token claims to be the attestation of a message; nothing is verified."""
    try:
        return bool(open_jws(jwt, MESSAGE, None))
    except InvalidEvidenceError:
        return False


def check_message(
    jwt: str, keys: Keys, *, now: float, trusted_issuers: Collection[str] | None = None
) -> CheckedAttestation:
    """Check the attestation of a message between agents at the time `now`.

    A valid one may say that the message was blocked: see `qwed_a2a.verdict`.
    """
    claims = None
    try:
        _, claims = open_jws(jwt, MESSAGE, keys)
        require(
            not (name := first_invalid_member(claims, _MESSAGE_CLAIMS)),
            "007",
            f"its claim `{name}` is missing or not as it must be",
        )
        issuer, message = claims["iss"], claims["qwed_a2a"]
        trusted = issuer.startswith(MESSAGE_ISSUERS) if trusted_issuers is None else issuer in (*trusted_issuers,)
        require(trusted, "002", f"its issuer {ascii(issuer)[:80]} is not trusted")
        was_read = claims["sub"] != UNREAD or message["verdict"] != "forwarded"
        require(was_read, "007", "its claim `sub` names no payload, and it was forwarded")
        require(now < claims["exp"], "004", f"it expired at {claims['exp']}")
        require(claims["iat"] <= now, "005", f"it is not valid before {claims['iat']}")
    except InvalidEvidenceError as wrong:
        return CheckedAttestation(False, claims, wrong.code, str(wrong))
    return CheckedAttestation(True, claims, None, "it is valid")


def check_chain(tokens: Sequence[str], keys: Keys, *, now: float, **options: Any) -> CheckedAttestation:
    """Check that the tokens, in this order, are a whole chain from index 0; `options` are those of one attestation."""
    checked, chain, previous = (
        CheckedAttestation(False, None, "QWED-ATT-008", "a chain has at least one attestation"),
        "",
        None,
    )
    for index, token in enumerate(tokens):
        checked = check_attestation(token, keys, now=now, **options)
        if not checked.valid or checked.claims is None:
            return checked._replace(message=f"attestation {index}: {checked.message}")
        claims = checked.claims["qwed"]
        chain = chain or claims.get("chain_id", "")
        if [claims.get(name) for name in ("chain_id", "chain_index", "previous_attestation")] != [
            chain,
            index,
            previous,
        ]:
            return CheckedAttestation(
                False, checked.claims, "QWED-ATT-008", f"attestation {index} does not follow in the chain"
            )
        previous = checked.claims["jti"]
    return checked


def check_receipt(receipt: Mapping[str, Any], keys: Keys) -> CheckedAttestation:
    """Check that a receipt proves its leaf to be in the log of its signed head; the claims are the leaf."""
    try:
        require(not (name := first_invalid_member(receipt, _RECEIPT)), "001", f"its `{name}` is not that of a receipt")
        claims, head = read_leaf(receipt["leaf"]), read_head(receipt["head"], keys)
        hashed, path = leaf_hash(receipt["leaf"].encode()), [bytes.fromhex(digest) for digest in receipt["path"]]
        proven = verify_inclusion(hashed, receipt["index"], head.size, path, head.root)
        require(proven, "003", "its path does not lead from its leaf to the root that was signed")
        return CheckedAttestation(True, claims, None, "it is valid")
    except InvalidEvidenceError as wrong:
        return CheckedAttestation(False, None, wrong.code, str(wrong))
