"""Independent check of receipts: the tree by RFC 6962, the signature by another library."""

import hashlib
import json
from typing import Any

from joserfc import jws
from joserfc.jwk import KeySet

Json = dict[str, Any]


def node(left: bytes, right: bytes) -> bytes:
    return hashlib.sha256(b"\x01" + left + right).digest()


def hash_of_leaf(leaf: str) -> bytes:
    return hashlib.sha256(b"\x00" + leaf.encode()).digest()


def root_from(index: int, size: int, hashed: bytes, path: list[bytes]) -> bytes:
    """Return the root of a tree of `size` leaves with this audit path of the leaf at `index` (RFC 6962, 2.1.1)."""
    assert 0 <= index < size, "no such leaf"
    if size == 1:
        assert path == [], "the path is too long"
        return hashed
    assert path, "the path is too short"
    half = 1 << (size - 1).bit_length() - 1
    *below, sibling = path
    if index < half:
        return node(root_from(index, half, hashed, below), sibling)
    return node(sibling, root_from(index - half, size - half, hashed, below))


def root_of(leaves: list[str]) -> bytes:
    """Return the root of all leaves (RFC 6962, 2.1)."""
    if len(leaves) < 2:
        return hash_of_leaf(leaves[0]) if leaves else hashlib.sha256(b"").digest()
    half = 1 << (len(leaves) - 1).bit_length() - 1
    return node(root_of(leaves[:half]), root_of(leaves[half:]))


def require_head(head: Json, keys: KeySet) -> Json:
    """Return the head after checking that one of the keys signed it."""
    assert set(head) == {"log_id", "size", "root", "time", "signature"}
    read = jws.deserialize_compact(head["signature"], keys, algorithms=["ES256"])
    assert read.headers()["typ"] == "qwed-head+jwt"
    signed = {name: head[name] for name in ("log_id", "root", "size", "time")}
    assert read.payload == json.dumps(signed, sort_keys=True, separators=(",", ":")).encode()
    return head


def require_receipt(receipt: Json, keys: KeySet, action_id: str) -> Json:
    """Return the leaf of a receipt after checking that it proves the action is in the log."""
    assert set(receipt) == {"index", "leaf", "path", "head"}
    head = require_head(receipt["head"], keys)
    path = [bytes.fromhex(node) for node in receipt["path"]]
    root = root_from(receipt["index"], head["size"], hash_of_leaf(receipt["leaf"]), path)
    assert root.hex() == head["root"]
    leaf: Json = json.loads(receipt["leaf"])
    assert leaf["activity_id"] == action_id
    return leaf
