"""Spec 4.2: what a decision looks like; one of another shape is acted on by nobody."""

from collections.abc import Mapping
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


def misshapen(members: Mapping[str, Any]) -> str | None:
    """The first member that is not what the protocol says it is; None where all are."""
    wrong = (name for name, kinds in _SHAPE.items() if not isinstance(members.get(name), kinds))
    said = members.get("error") or {}
    return next(wrong, None) or next((name for name in _SAID if not isinstance(said.get(name), str | None)), None)
