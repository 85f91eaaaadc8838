"""What a payload is known by: the hash of its canonical JSON, taken only of what is small enough to be taken."""

import hashlib
import json
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from qwed.words import NotCanonical, canonical
from qwed.words.canonical import MAX_DEPTH
from qwed_a2a.finding import Ruling
from qwed_a2a.verdict import EngineName, VerdictStatus

# What Python's own encoder writes as RFC 8785 does; a float it writes otherwise, and names beyond ASCII it may sort so.
_PLAIN = frozenset({str, int, bool, type(None)})
_HOLDING = (list, tuple, Mapping)
_encode = json.JSONEncoder(ensure_ascii=False, sort_keys=True, separators=(",", ":"), check_circular=False).encode


class _Seen(NamedTuple):
    small: bool
    plain: bool


def digest_of(payload: Mapping[str, Any], most: int) -> str | Ruling:
    """The SHA-256 of the canonical payload in hex; where it is no JSON or larger than `most` bytes, the refusal."""
    try:
        seen = _look_over(payload, most)
        text = _written(payload, seen.plain) if seen.small else None
    except (NotCanonical, RecursionError) as error:
        reason = str(error) if isinstance(error, NotCanonical) else f"nested deeper than {MAX_DEPTH}"
        return _refusal(f"the payload is no JSON: {reason}", "payload_is_json")
    if text is None or len(text) > most:
        return _refusal(f"the payload is larger than {most} bytes", "payload_size", max_payload_size_bytes=most)
    return hashlib.sha256(text).hexdigest()


def _written(payload: Mapping[str, Any], plain: bool) -> bytes:
    try:
        return _encode(payload).encode() if plain else canonical(payload)
    except ValueError:
        # Half of a surrogate pair, or a number of too many digits: it says which.
        return canonical(payload)


def _look_over(payload: Mapping[str, Any], most: int) -> _Seen:
    """Whether its characters and values alone may fit: a list that holds another many times may be without end."""
    size, plain = 1, type(payload) is dict
    waiting: list[tuple[int, Any]] = [(0, payload)]
    while waiting and size <= most:
        depth, value = waiting.pop()
        names = _names(value)
        held = value if names is None else value.values()
        plain = plain and (names is None or names.isascii())
        # What is held counts before it is looked into, so that no more ever waits than may fit.
        size += len(held) + len(names or "")
        if held and depth >= MAX_DEPTH:
            raise NotCanonical(f"nested deeper than {MAX_DEPTH}")
        if size <= most:
            characters, inner, known = _inside(held)
            size, plain = size + characters, plain and known
            waiting += [(depth + 1, each) for each in inner]
    return _Seen(size <= most, plain)


def _names(value: Any) -> str | None:
    """The names of an object, one after the other."""
    if type(value) is list or not isinstance(value, Mapping):
        return None
    try:
        return "".join(value)
    except TypeError:
        raise NotCanonical("an object key is not a string") from None


def _inside(held: Iterable[Any]) -> tuple[int, list[Any], bool]:
    """How many characters of text there are, what holds more, and whether all of it is plain."""
    characters, inner, plain = 0, list[Any](), True
    for each in held:
        kind = type(each)
        if kind is str:
            characters += len(each)
        elif kind is dict or kind is list:
            inner.append(each)
        elif kind not in _PLAIN:
            plain = False
            if isinstance(each, _HOLDING):
                inner.append(each)
    return characters, inner, plain


def _refusal(reason: str, check: str, **details: Any) -> Ruling:
    return Ruling(VerdictStatus.BLOCKED, EngineName.TRUST_BOUNDARY, reason, {"check": check, **details})
