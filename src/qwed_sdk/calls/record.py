"""The record and the node: the log, attestations, erasure, how the server is."""

from typing import Any

from qwed_sdk.calls.pages import entries_of
from qwed_sdk.errors import QWEDProtocolError
from qwed_sdk.records import Known
from qwed_sdk.wire import Call, Request, ask, at, object_in, problem_of


def health() -> Call[Known]:
    """The process answers."""
    return Known((yield from ask("GET", "/health", public=True)))


def ready() -> Call[Known]:
    """Which parts are there; `ready` is false until all of them are."""
    response = yield Request(method="GET", path="/ready", public=True)
    members = object_in(response)
    if not isinstance(members.get("ready"), bool):
        raise problem_of(response)
    return Known(members)


def get_jwks() -> Call[Known]:
    """The public keys that attestations and heads are checked with."""
    return Known((yield from ask("GET", "/.well-known/jwks.json", public=True)))


def verify_attestation(jwt: str) -> Call[Known]:
    """`{valid, claims, error}`, and whether it was revoked; `qwed_sdk.verify_attestation` needs no server."""
    return Known((yield from ask("POST", "/attestation/verify", {"jwt": jwt}, repeatable=True)))


def get_attestation(attestation_id: str) -> Call[Known]:
    """An attestation, issued again from the log."""
    return Known((yield from ask("GET", at("attestation", attestation_id))))


def revoke_attestation(attestation_id: str, reason: str) -> Call[Known]:
    """Whoever asks the server is told that it does not hold any more."""
    return Known((yield from ask("POST", at("attestation", attestation_id, "revoke"), {"reason": reason})))


def rotate_signing_key(reason: str) -> Call[Known]:
    """A new key signs from now on; old ones stay in the JWKS."""
    return Known((yield from ask("POST", "/signing-key/rotate", {"reason": reason})))


def audit_head() -> Call[Known]:
    """How the log stands, signed: keep it, and any later change of what it covers is found."""
    return Known((yield from ask("GET", "/audit/head")))


def audit_entries(from_index: int = 0, limit: int = 100) -> Call[list[dict[str, Any]]]:
    """Leaves of the log."""
    query = {"from_index": from_index, "limit": limit}
    return entries_of((yield from ask("GET", "/audit/entries", query=query)), "entries")


def audit_inclusion(index: int | None = None, size: int | None = None, activity_id: str | None = None) -> Call[Known]:
    """The proof that an entry is in the log."""
    query = {"index": index, "size": size, "activity_id": activity_id}
    return Known((yield from ask("GET", "/audit/proof/inclusion", query=query)))


def audit_consistency(first: int, second: int) -> Call[Known]:
    """The proof that the log of one size is the beginning of that of another."""
    return Known((yield from ask("GET", "/audit/proof/consistency", query={"from": first, "to": second})))


def erase(subject: str) -> Call[Known]:
    """Destroy the key of a subject, and with it all content about them."""
    said = yield from ask("POST", "/audit/erase", {"subject": subject})
    if not isinstance(said.get("erased"), bool):
        raise QWEDProtocolError("an answer that does not say whether anything was erased: is this a qwed server?")
    return Known(said)
