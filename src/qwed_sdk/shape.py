"""Spec 4.2: what a decision looks like; one of another shape is acted on by nobody."""

import json
from collections.abc import Iterable, Mapping
from typing import Any

_SHAPE: dict[str, Any] = {
    "action_id": str | None,
    "approval_id": str | None,
    "verified_query": str | None,
    "attestation": str | dict | None,
    "corrected": dict | None,
    "verification": dict | None,
    "error": dict | None,
}
_SAID = ("code", "message", "suggestion")


def contradiction(members: Mapping[str, Any], content: bytes) -> str | None:
    """What keeps the answer from being a decision of the protocol; None where nothing does."""
    wrong = _misshapen(members)
    if wrong is not None:
        return f"`{wrong}` is of another kind"
    return "it says something twice" if _says_twice(content) else None


def _misshapen(members: Mapping[str, Any]) -> str | None:
    """The first member that is not what the protocol says it is."""
    wrong = (name for name, kinds in _SHAPE.items() if not isinstance(members.get(name), kinds))
    said = members.get("error") or {}
    return next(wrong, None) or next((name for name in _SAID if not isinstance(said.get(name), str | None)), None)


def _says_twice(content: bytes) -> bool:
    # Of two members of one name a reader takes the last, another the first: who was between us may have read the other.
    try:
        json.loads(content, object_pairs_hook=_once)
    except (ValueError, RecursionError):
        return True
    return False


def _once(pairs: Iterable[tuple[str, Any]]) -> None:
    names = [name for name, _ in pairs]
    if len(set(names)) != len(names):
        raise ValueError("twice")
