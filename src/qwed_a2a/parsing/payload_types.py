"""Types of the parser: message parts in, payloads out."""

from collections.abc import Mapping
from typing import Any, NamedTuple

from qwed_a2a.message import PayloadType

NO_METADATA: Mapping[str, Any] = {}


class TextPart(NamedTuple):
    """Text; its media type or name may say what it is."""

    text: str
    media_type: str = ""
    name: str = ""
    metadata: Mapping[str, Any] = NO_METADATA


class DataPart(NamedTuple):
    """JSON value."""

    value: Any
    metadata: Mapping[str, Any] = NO_METADATA


class FilePart(NamedTuple):
    """File: its bytes or its URL."""

    content: bytes | None = None
    url: str = ""
    name: str = ""
    media_type: str = ""
    metadata: Mapping[str, Any] = NO_METADATA


Part = TextPart | DataPart | FilePart


class Payload(NamedTuple):
    """Payload for a guard, or GENERAL."""

    kind: PayloadType
    payload: dict[str, Any]


class Contents(NamedTuple):
    """All payloads of a message in order; the last one is GENERAL and has the rest."""

    payloads: tuple[Payload, ...]
    text: str
    """Text that belongs to no other payload."""


class UnparsableMessage(NamedTuple):
    """Message that cannot be read completely and is refused; `reason` says what to change."""

    reason: str
