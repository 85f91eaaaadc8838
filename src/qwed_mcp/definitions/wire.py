"""A definition as it goes over the wire, and the digest that stands for exactly it.

`_meta` belongs to it: clients draw windows and choose permissions from what stands there, so it can do harm as a
description can. Members the protocol does not know do not: they are dropped on the way in and reach nobody.
"""

import hashlib
from typing import Any

from mcp_types import Tool

from qwed.words.canonical import NotCanonical, canonical

MAX_BYTES = 65_536
"""Of one definition: several times the largest that is known to be honest."""


class TooLarge(ValueError):
    """A definition that is not read; the message says what is too much of it."""


def definition_of(tool: Tool) -> dict[str, Any]:
    """What a client is told of the tool, under the names of the protocol; TooLarge where it is nested too deep."""
    try:
        return tool.model_dump(by_alias=True, exclude_none=True, mode="json")
    except ValueError:
        raise TooLarge("nested too deep") from None


def written(definition: dict[str, Any]) -> bytes:
    """The canonical JSON of a definition; TooLarge where nobody could read it."""
    try:
        text = canonical(definition)
    except NotCanonical as problem:
        raise TooLarge(str(problem)) from None
    if len(text) > MAX_BYTES:
        raise TooLarge(f"{len(text):,} bytes, and at most {MAX_BYTES:,} are read")
    return text


def digest_of(definition: dict[str, Any]) -> str:
    """The SHA-256 of a definition; TooLarge as above."""
    return hashlib.sha256(written(definition)).hexdigest()
