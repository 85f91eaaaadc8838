"""Canonical form and digest of a tool definition.

`_meta` is part of it: clients take windows and permissions from it, so it can do as much harm as a description.
Members that the protocol does not define are not part of it: they are dropped on receipt.
"""

import hashlib
from typing import Any

from mcp_types import Tool

from qwed.model.canonical import CanonicalJsonError, canonical

MAX_BYTES = 65_536
"""Largest definition: several times the largest known honest one."""


class DefinitionTooLargeError(ValueError):
    """A definition exceeds a limit; the message names it."""


def definition_of(tool: Tool) -> dict[str, Any]:
    """Return the definition with the protocol's names; raise DefinitionTooLargeError if it is nested too deep."""
    try:
        return tool.model_dump(by_alias=True, exclude_none=True, mode="json")
    except ValueError:
        raise DefinitionTooLargeError("nested too deep") from None


def canonical_bytes(definition: dict[str, Any]) -> bytes:
    """Return the canonical JSON of a definition; raise DefinitionTooLargeError above a limit."""
    try:
        text = canonical(definition)
    except CanonicalJsonError as problem:
        raise DefinitionTooLargeError(str(problem)) from None
    if len(text) > MAX_BYTES:
        raise DefinitionTooLargeError(f"{len(text):,} bytes, at most {MAX_BYTES:,} are allowed")
    return text


def digest_of(definition: dict[str, Any]) -> str:
    """Return the SHA-256 of a definition; raise DefinitionTooLargeError above a limit."""
    return hashlib.sha256(canonical_bytes(definition)).hexdigest()
