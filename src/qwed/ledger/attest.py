"""Attestations (ES256 JWTs that name the activity, the action and the decision) and receipts (INTERFACES 4)."""

from typing import Any, NamedTuple

import msgspec

from qwed.ledger.keyring import Keyring
from qwed.ledger.leaf import Leaf
from qwed.ledger.sequencer import Head

TYPE = "qwed-attestation+jwt"
VERSION = "1.0"
_encode = msgspec.json.Encoder().encode


class Chain(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Position of an attestation in a chain."""

    id: str
    index: int
    previous: str | None = None


class AttestationExtras(NamedTuple):
    """Claims that are not in the leaf, because they could reveal the action."""

    sub: str | None
    chain: Chain | None = None


class Receipt(msgspec.Struct, frozen=True, kw_only=True):
    """Proof without a JWT: the leaf, its path, and the signed head."""

    index: int
    leaf: str
    path: list[str]
    head: Head


class Signer:
    """Signs for one node, with its current key."""

    def __init__(self, keyring: Keyring, ttl_seconds: int = 86_400) -> None:
        self.keyring = keyring
        self._ttl_seconds = ttl_seconds

    def attest(self, leaf: Leaf, extras: AttestationExtras, index: int, head: Head) -> str:
        """Issue the attestation of one activity, from its leaf, its log position and the extra claims alone."""
        claims = self._claims(leaf, extras, {"index": index, "size": head.size, "root": head.root})
        return self.keyring.current.sign(TYPE, _encode(claims))

    def expires_at(self, leaf: Leaf) -> int:
        """Return the expiry of an attestation of this leaf."""
        return leaf.time_ms // 1000 + self._ttl_seconds

    def _claims(self, leaf: Leaf, extras: AttestationExtras, log: dict[str, Any]) -> dict[str, Any]:
        verified = leaf.status in ("VERIFIED", "CORRECTED")
        return {
            "iss": self.keyring.issuer,
            "sub": extras.sub,
            "iat": leaf.time_ms // 1000,
            "exp": self.expires_at(leaf),
            "jti": leaf.attestation_id,
            "qwed": {
                "version": VERSION,
                "result": {
                    "status": leaf.status,
                    "verified": verified,
                    "engine": leaf.engine,
                    "confidence": 1 if verified else 0,
                },
                "decision": leaf.decision,
                "risk_level": leaf.risk_level,
                "agent_id": leaf.agent_id,
                # The requested action, whether it was permitted at once or by a person later.
                "activity_id": leaf.about or leaf.activity_id,
                "policy_hash": leaf.policy_hash,
                "log": log,
                **_policy_claims(leaf),
                **_chain_claims(extras.chain),
            },
        }


def _policy_claims(leaf: Leaf) -> dict[str, Any]:
    """Return the version of the policy set under which it was decided, and the rule that decided."""
    if leaf.policy_version is None:
        return {}
    names = {"policy": leaf.policy, "rule": leaf.policy_rule}
    return {"policies": {"version": leaf.policy_version, **{k: v for k, v in names.items() if v is not None}}}


def _chain_claims(chain: Chain | None) -> dict[str, Any]:
    if chain is None:
        return {}
    links = {"chain_id": chain.id, "chain_index": chain.index}
    return links if chain.previous is None else {**links, "previous_attestation": chain.previous}
