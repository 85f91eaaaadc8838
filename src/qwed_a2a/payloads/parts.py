"""What goes in and what comes out: the parts of a message as A2A has them, and the payloads found in them."""

from collections.abc import Mapping
from typing import Any, NamedTuple

from qwed_a2a.message import PayloadType

NOTHING: Mapping[str, Any] = {}


class TextPart(NamedTuple):
    """Text, of which a media type or a name may say what it is."""

    text: str
    media_type: str = ""
    name: str = ""
    metadata: Mapping[str, Any] = NOTHING


class DataPart(NamedTuple):
    """A JSON value."""

    value: Any
    metadata: Mapping[str, Any] = NOTHING


class FilePart(NamedTuple):
    """A file: its bytes, or where it is."""

    content: bytes | None = None
    url: str = ""
    name: str = ""
    media_type: str = ""
    metadata: Mapping[str, Any] = NOTHING


Part = TextPart | DataPart | FilePart


class Payload(NamedTuple):
    """Something that a guard looks at, or that passes as GENERAL."""

    kind: PayloadType
    payload: dict[str, Any]


class Contents(NamedTuple):
    """Everything a message holds, in its order; what is left over is the last payload, a GENERAL one."""

    payloads: tuple[Payload, ...]
    text: str
    """The text that belongs to no other payload."""


class Unread(NamedTuple):
    """The message cannot be read whole, so it is refused; `reason` says what to change."""

    reason: str
