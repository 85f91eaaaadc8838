"""Checks an exported log, a receipt or an attestation of qwed, offline and as one file: `python verifier.py --help`.

It needs the standard library and `cryptography`, and believes nothing but the public keys it is given. Whoever kept
one signed head of a log finds every edit, deletion, reordering, truncation or fork of what that head covers.
"""

import argparse
import base64
import hashlib
import hmac
import json
import re
import sys
from array import array
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache, reduce
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.utils import encode_dss_signature
from cryptography.hazmat.primitives.hashes import SHA256

EMPTY_ROOT = hashlib.sha256(b"").digest()
ATTESTATION, HEAD = "qwed-attestation+jwt", "qwed-head+jwt"
MAX_LINE, MAX_TOKEN, MAX_KEYS, MAX_FINDINGS, MAX_SIGNATURES = 1 << 24, 1 << 13, 1000, 100, 10_000
_ORDER = 0xFFFFFFFF00000000FFFFFFFFFFFFFFFFBCE6FAADA7179E84F3B9CAC2FC632551
_ES256 = ec.ECDSA(SHA256())
Keys = Mapping[str, ec.EllipticCurvePublicKey]


def leaf_hash(data: bytes) -> bytes:
    """RFC 6962: the hash of a leaf, which cannot pass for that of a node."""
    return hashlib.sha256(b"\x00" + data).digest()


def node_hash(left: bytes, right: bytes) -> bytes:
    """RFC 6962: the hash of two subtrees."""
    return hashlib.sha256(b"\x01" + left + right).digest()


class Tree:
    """A tree that grows at its end and keeps only the roots of its complete subtrees, one per bit of its size."""

    def __init__(self) -> None:
        self.size = 0
        self._peaks: list[bytes] = []

    def add(self, leaf_hash: bytes) -> None:
        """Append one leaf."""
        position = self.size
        while position & 1:
            leaf_hash = node_hash(self._peaks.pop(), leaf_hash)
            position >>= 1
        self._peaks.append(leaf_hash)
        self.size += 1

    def root(self) -> bytes:
        """The root of all leaves so far."""
        return reduce(lambda right, left: node_hash(left, right), reversed(self._peaks)) if self.size else EMPTY_ROOT


def _climb(node: int, last: int, roots: list[bytes], path: Sequence[bytes]) -> list[bytes]:
    """RFC 9162, 2.1.3.2 and 2.1.4.2: the roots a path leads to, the last being that of the larger tree; else none."""
    for sibling in path:
        if last == 0 or len(sibling) != 32:
            return []
        if node & 1 or node == last:
            roots = [node_hash(sibling, root) for root in roots]
            while node and not node & 1:
                node, last = node >> 1, last >> 1
        else:
            roots = [*roots[:-1], node_hash(roots[-1], sibling)]
        node, last = node >> 1, last >> 1
    return roots if last == 0 else []


def verify_inclusion(leaf_hash: bytes, index: int, size: int, path: Sequence[bytes], root: bytes) -> bool:
    """Whether the path proves the leaf to stand at `index` of the tree with this size and root."""
    return 0 <= index < size and _climb(index, size - 1, [leaf_hash], path) == [root]


def verify_consistency(first: int, second: int, path: Sequence[bytes], first_root: bytes, second_root: bytes) -> bool:
    """Whether the path proves the first tree to be the beginning of the second."""
    if not 0 < first < second:
        same = first_root == (second_root if first else EMPTY_ROOT)
        return 0 <= first <= second and not path and same and (second > 0 or second_root == EMPTY_ROOT)
    node, last = first - 1, second - 1
    while node & 1:
        node, last = node >> 1, last >> 1
    start, *rest = [first_root, *path] if first & (first - 1) == 0 else [*path] or [b""]
    return _climb(node, last, [start, start], rest) == [first_root, second_root]


class Invalid(ValueError):
    """Something that was to be believed and is not; `code` says why in the way of QWED-ATT-00x."""

    def __init__(self, number: str, message: str) -> None:
        super().__init__(message)
        self.code = f"QWED-ATT-{number}"


def _require(condition: bool, number: str, message: str) -> None:
    if not condition:
        raise Invalid(number, message)


def _members(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members = dict(pairs)
    if len(members) != len(pairs):
        raise ValueError("a member stands there twice")
    return members


def _no_number(text: str) -> Any:
    raise ValueError(f"`{text[:20]}` is no number for it")


_strict = json.JSONDecoder(object_pairs_hook=_members, parse_constant=_no_number, parse_float=_no_number).decode
_with_fractions = json.JSONDecoder(object_pairs_hook=_members, parse_constant=_no_number).decode
# Members of leaves and heads have ASCII names and whole numbers, for which this is RFC 8785.
_canonical = json.JSONEncoder(ensure_ascii=False, sort_keys=True, separators=(",", ":")).encode


def _object(data: str | bytes, decode: Callable[[str], Any] = _strict) -> dict[str, Any]:
    """The JSON object in `data`, or ValueError."""
    try:
        text = data.decode() if isinstance(data, bytes) else data
        value = decode(text)
        if "\\u" in text:  # the only way to half a surrogate pair, which no text holds
            _canonical(value).encode()
    except (ValueError, RecursionError) as error:
        raise ValueError(f"it is not JSON: {str(error)[:80].lower()}") from None
    if not isinstance(value, dict):
        raise ValueError("it is not a JSON object")
    return value


def _shown(value: Any) -> str:
    return f"`{ascii(value)[:60]}`"


def _bytes(segment: str) -> bytes:
    data = base64.urlsafe_b64decode(segment + "=" * (-len(segment) % 4))
    if base64.urlsafe_b64encode(data).rstrip(b"=") != segment.encode():
        raise ValueError("a segment is not canonical base64url")
    return data


def _is_text(value: Any) -> bool:
    return isinstance(value, str) and 0 < len(value) <= 1024


def _is_maybe(value: Any) -> bool:
    return value is None or _is_text(value)


def _is_whole(value: Any) -> bool:
    return type(value) is int and 0 <= value < 1 << 53


def _is_hash(value: Any) -> bool:
    return isinstance(value, str) and re.fullmatch("[0-9a-f]{64}", value) is not None


def _is_time(value: Any) -> bool:
    return isinstance(value, str) and re.fullmatch(r"[0-9-]{10}T[0-9:]{8}(\.[0-9]{1,9})?Z", value) is not None
