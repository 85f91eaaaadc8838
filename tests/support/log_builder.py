"""Builder of real logs with their own key: leaves, signed heads, exports, attestations and receipts.

It shares no code with signing and storage in production, so that the two can be compared.
"""

import base64
import hashlib
import hmac
import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.utils import decode_dss_signature

from qwed.ledger.verifier import Tree, leaf_hash

LOG_ID = "org_5f1c0a9b3d7e42c8a6b01d2e"
NOW = 1_790_000_000
ORDER = 0xFFFFFFFF00000000FFFFFFFFFFFFFFFFBCE6FAADA7179E84F3B9CAC2FC632551
_ES256 = ec.ECDSA(hashes.SHA256(), deterministic_signing=True)

Line = dict[str, Any]
"""One line of an export."""


def text(value: Any) -> str:
    """Return canonical JSON for members with ASCII names and integers."""
    return json.dumps(value, ensure_ascii=False, sort_keys=True, separators=(",", ":"))


def b64(data: bytes) -> str:
    """Return base64url without padding."""
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def unb64(segment: str) -> bytes:
    """Decode a base64url segment."""
    return base64.urlsafe_b64decode(segment + "=" * (-len(segment) % 4))


class LogSigner:
    """Holder of a signing key."""

    def __init__(self, secret: int = 1) -> None:
        self.key = ec.derive_private_key(0x5EED << 128 | secret, ec.SECP256R1())
        point = self.key.public_key().public_numbers()
        members = {"crv": "P-256", "kty": "EC", "x": b64(point.x.to_bytes(32)), "y": b64(point.y.to_bytes(32))}
        self.kid = b64(hashlib.sha256(text(members).encode()).digest())
        self.jwk = {**members, "alg": "ES256", "kid": self.kid, "use": "sig"}
        self.jwks: dict[str, Any] = {"keys": [self.jwk]}
        self.keys = {self.kid: self.key.public_key()}
        self.issuer = f"did:qwed:node:{hashlib.sha256(self.kid.encode()).hexdigest()[:32]}"

    def sign(self, typ: str, payload: bytes, /, **header: Any) -> str:
        """Return a compact JWS; header members can be added, replaced, or removed with `...`."""
        members = {"alg": "ES256", "kid": self.kid, "typ": typ, **header}
        said = text({name: value for name, value in members.items() if value is not ...}).encode()
        signed = f"{b64(said)}.{b64(payload)}"
        return f"{signed}.{b64(self.signature(signed.encode()))}"

    def signature(self, signed: bytes) -> bytes:
        """Return r and s, concatenated."""
        r, s = decode_dss_signature(self.key.sign(signed, _ES256))
        return r.to_bytes(32) + s.to_bytes(32)

    def attest(self, claims: dict[str, Any]) -> str:
        """Return an attestation with these claims."""
        return self.sign("qwed-attestation+jwt", text(claims).encode())

    def head(self, size: int, root: bytes, log_id: str = LOG_ID, time: str | None = None) -> dict[str, Any]:
        """Return a signed head."""
        moment = datetime.fromtimestamp(NOW + size, UTC).isoformat().removesuffix("+00:00") + "Z"
        members = {"log_id": log_id, "root": root.hex(), "size": size, "time": time or moment}
        return {**members, "signature": self.sign("qwed-head+jwt", text(members).encode())}


NODE = LogSigner()


def claims(issuer: str = NODE.issuer, **members: Any) -> dict[str, Any]:
    """Return the claims of an attestation; `...` removes a member."""
    every = {
        "iss": issuer,
        "sub": "sha256:" + "a" * 64,
        "iat": NOW,
        "exp": NOW + 86_400,
        "jti": "att_1",
        "qwed": {
            "version": "1.0",
            "result": {"status": "VERIFIED", "verified": True, "engine": "math", "confidence": 1},
            "decision": "APPROVED",
            "risk_level": "low",
            "agent_id": "agent_1",
            "activity_id": "act_1",
            "policy_hash": "b" * 64,
            "log": {"index": 7, "size": 9, "root": "c" * 64},
        },
    }
    for name, value in members.items():
        *groups, last = name.split("__")
        group: dict[str, Any] = every
        for each in groups:
            group = group[each]
        group[last] = value
        if value is ...:
            del group[last]
    return every


def leaf(number: int, **members: Any) -> str:
    """Return the text of one leaf of version 2; `...` removes a member."""
    every = {
        "action_type": "calculate",
        "activity_id": f"act_{number:026x}",
        "agent_id": "agent_9d1f4c2b7a3e5d6c8b9a0f1e",
        "by": "key_2a6d8e",
        "commitment": hashlib.sha256(b"%d" % number).hexdigest(),
        "cost_micros": 10_000,
        "decision": "APPROVED",
        "engine": "math",
        "latency_us": 400 + number % 97,
        "policy_hash": "b" * 64,
        "risk_level": "low",
        "status": "VERIFIED",
        "step_number": number % 50 + 1,
        "time_ms": NOW * 1000 + number,
        "v": 2,
        **members,
    }
    return text({name: value for name, value in every.items() if value is not ...})


@dataclass
class SignedLog:
    """Log as the operator of the database holds it: leaf texts, and heads by size."""

    leaves: list[str]
    heads: dict[int, dict[str, Any]] = field(default_factory=dict)
    log_id: str = LOG_ID
    issuer: str = NODE.issuer
    keys: list[dict[str, str]] = field(default_factory=lambda: [NODE.jwk])

    def lines(self) -> Iterator[Line]:
        """Yield the lines of its export."""
        yield {"qwed_log": 1, "log_id": self.log_id, "issuer": self.issuer}
        if 0 in self.heads:
            yield {"head": self.heads[0]}
        for index, each in enumerate(self.leaves):
            yield {"entry": entry(index, each)}
            if index + 1 in self.heads:
                yield {"head": self.heads[index + 1]}
        yield {"keys": self.keys}

    def export(self) -> list[bytes]:
        """Return the encoded export."""
        return encode_lines(self.lines())


def entry(index: int, leaf_text: str) -> dict[str, Any]:
    """Return an entry with a correct hash."""
    return {"index": index, "leaf": leaf_text, "leaf_hash": leaf_hash(leaf_text.encode()).hex()}


def encode_lines(lines: Iterator[Line] | Sequence[Line]) -> list[bytes]:
    """Encode lines as JSON."""
    return [json.dumps(line, ensure_ascii=False, separators=(",", ":")).encode() + b"\n" for line in lines]


def roots(leaves: Sequence[str]) -> list[bytes]:
    """Return the root of every prefix of these leaves, starting with the empty one."""
    tree, roots_so_far = Tree(), []
    roots_so_far.append(tree.root())
    for each in leaves:
        tree.add(leaf_hash(each.encode()))
        roots_so_far.append(tree.root())
    return roots_so_far


def build_log(leaves: list[str], sizes: Sequence[int], node: LogSigner = NODE, log_id: str = LOG_ID) -> SignedLog:
    """Return a valid log of these leaves with heads of these sizes."""
    wanted, tree, heads = set(sizes), Tree(), {}
    for size in range(len(leaves) + 1):
        if size:
            tree.add(leaf_hash(leaves[size - 1].encode()))
        if size in wanted:
            heads[size] = node.head(size, tree.root(), log_id)
    return SignedLog(leaves, heads, log_id, node.issuer, [node.jwk])


def batches(count: int, batch: Callable[[int], int] = lambda number: number % 7 + 1) -> list[int]:
    """Return the sizes at which a log of `count` leaves was committed."""
    sizes: list[int] = []
    size = 0
    while size < count:
        size = min(count, size + batch(len(sizes)))
        sizes.append(size)
    return sizes


def log_of(count: int, node: LogSigner = NODE) -> SignedLog:
    """Return a log of `count` leaves, committed in batches of one to seven."""
    return build_log([leaf(number) for number in range(count)], batches(count), node)


def commitment(salt: bytes, payload: str) -> str:
    """Return the commitment of a leaf to its content."""
    return hmac.new(salt, payload.encode(), hashlib.sha256).hexdigest()
