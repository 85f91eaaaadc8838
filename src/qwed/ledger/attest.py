"""INTERFACES 4: attestations, ES256 JWTs that name the activity, the action and what was decided; and receipts."""

from typing import Any, NamedTuple

import msgspec

from qwed.ledger.keyring import Keyring
from qwed.ledger.leaf import Leaf
from qwed.ledger.sequencer import Head

TYPE = "qwed-attestation+jwt"
VERSION = "1.0"
_encode = msgspec.json.Encoder().encode


class Chain(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The place of an attestation in a chain of them."""

    id: str
    index: int
    previous: str | None = None


class Stated(NamedTuple):
    """What an attestation says that no leaf holds, because it could tell what the action was."""

    sub: str | None
    chain: Chain | None = None


class Receipt(msgspec.Struct, frozen=True, kw_only=True):
    """What is given where no JWT is asked for: the leaf, its path, and the signed head it leads to."""

    index: int
    leaf: str
    path: list[str]
    head: Head


class Signer:
    """Signs for one node, with whichever key is its present one."""

    def __init__(self, keyring: Keyring, ttl_seconds: int = 86_400) -> None:
        self.keyring = keyring
        self._ttl_seconds = ttl_seconds

    def attest(self, leaf: Leaf, stated: Stated, index: int, head: Head) -> str:
        """The attestation of one activity, from its leaf, its place in the log and what was said beside it alone."""
        claims = self._claims(leaf, stated, {"index": index, "size": head.size, "root": head.root})
        return self.keyring.current.sign(TYPE, _encode(claims))

    def expires_at(self, leaf: Leaf) -> int:
        """When an attestation of this leaf ends."""
        return leaf.time_ms // 1000 + self._ttl_seconds

    def _claims(self, leaf: Leaf, stated: Stated, log: dict[str, Any]) -> dict[str, Any]:
        verified = leaf.status in ("VERIFIED", "CORRECTED")
        return {
            "iss": self.keyring.issuer,
            "sub": stated.sub,
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
                # The action that was asked about, whether it was permitted at once or by a person later.
                "activity_id": leaf.about or leaf.activity_id,
                "policy_hash": leaf.policy_hash,
                "log": log,
                **_links(stated.chain),
            },
        }


def _links(chain: Chain | None) -> dict[str, Any]:
    if chain is None:
        return {}
    links = {"chain_id": chain.id, "chain_index": chain.index}
    return links if chain.previous is None else {**links, "previous_attestation": chain.previous}
