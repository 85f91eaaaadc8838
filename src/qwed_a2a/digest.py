"""Canonical JSON of a payload, and its SHA-256, computed only for payloads within the size limit."""

import hashlib
import json
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from qwed.kernel.a2a.message import EngineName, MessageVerdict
from qwed.model import CanonicalJsonError, canonical
from qwed.model.canonical import MAX_DEPTH

# Types that Python's own encoder writes as RFC 8785 does; it differs for floats and for the order of non-ASCII keys.
_PLAIN = frozenset({str, int, bool, type(None)})
_CONTAINERS = (list, tuple, Mapping)
_encode = json.JSONEncoder(ensure_ascii=False, sort_keys=True, separators=(",", ":"), check_circular=False).encode


class _PayloadScan(NamedTuple):
    small: bool
    plain: bool


def digest_of(payload: Mapping[str, Any], most: int) -> str | MessageVerdict:
    """Return the SHA-256 of the canonical payload in hex, or a refusal if it is not JSON or exceeds `most` bytes."""
    text = canonical_payload(payload, most)
    return text if isinstance(text, MessageVerdict) else hashlib.sha256(text).hexdigest()


def canonical_payload(payload: Mapping[str, Any], most: int) -> bytes | MessageVerdict:
    """Return the payload in canonical JSON, or a refusal if it is not JSON or exceeds `most` bytes."""
    try:
        scan = _scan(payload, most)
        text = _canonical_bytes(payload, scan.plain) if scan.small else None
    except (CanonicalJsonError, RecursionError) as error:
        reason = str(error) if isinstance(error, CanonicalJsonError) else f"nested deeper than {MAX_DEPTH}"
        return _refusal(f"the payload is not JSON: {reason}", "payload_is_json")
    if text is None or len(text) > most:
        return _refusal(f"the payload is larger than {most} bytes", "payload_size", max_payload_size_bytes=most)
    return text


def _canonical_bytes(payload: Mapping[str, Any], plain: bool) -> bytes:
    try:
        return _encode(payload).encode() if plain else canonical(payload)
    except ValueError:
        # A lone surrogate, or a number of too many digits: `canonical` reports which.
        return canonical(payload)


def _scan(payload: Mapping[str, Any], most: int) -> _PayloadScan:
    """Count the characters and values as a lower bound of the size: a list that holds another many times may be
    endless."""
    size, plain = 1, type(payload) is dict
    pending: list[tuple[int, Any]] = [(0, payload)]
    while pending and size <= most:
        depth, value = pending.pop()
        keys = _joined_keys(value)
        values = value if keys is None else value.values()
        plain = plain and (keys is None or keys.isascii())
        # Counted before they are scanned, so that `pending` never holds more than may fit.
        size += len(values) + len(keys or "")
        if values and depth >= MAX_DEPTH:
            raise CanonicalJsonError(f"nested deeper than {MAX_DEPTH}")
        if size <= most:
            characters, inner, values_plain = _scan_values(values)
            size, plain = size + characters, plain and values_plain
            pending += [(depth + 1, item) for item in inner]
    return _PayloadScan(size <= most, plain)


def _joined_keys(value: Any) -> str | None:
    """Return the keys of an object, joined, or None for a list."""
    if type(value) is list or not isinstance(value, Mapping):
        return None
    try:
        return "".join(value)
    except TypeError:
        raise CanonicalJsonError("an object key is not a string") from None


def _scan_values(values: Iterable[Any]) -> tuple[int, list[Any], bool]:
    """Return the number of text characters, the containers, and True if all values are plain."""
    characters, inner, plain = 0, list[Any](), True
    for value in values:
        kind = type(value)
        if kind is str:
            characters += len(value)
        elif kind is dict or kind is list:
            inner.append(value)
        elif kind not in _PLAIN:
            plain = False
            if isinstance(value, _CONTAINERS):
                inner.append(value)
    return characters, inner, plain


def _refusal(reason: str, check: str, **details: Any) -> MessageVerdict:
    return MessageVerdict(False, EngineName.TRUST_BOUNDARY, reason, {"check": check, **details})
