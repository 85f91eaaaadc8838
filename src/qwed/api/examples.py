"""What each operation is asked and answers, by operation id; a test sends every request and compares the answer."""

from importlib.resources import files
from typing import Any

import msgspec


class Example(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """One request and the answer it got."""

    name: str
    summary: str
    status: int = 200
    path: dict[str, str] = {}
    query: dict[str, str] = {}
    headers: dict[str, str] = {}
    body: Any = msgspec.UNSET
    answer: Any = None
    key: str | None = None
    """Who asks, where it is not the owner: an organisation key of an earlier example."""
    token: str | None = None
    """Who asks, where it is the agent itself."""
    excerpt: bool = False
    """Whether the answer has more in it than is printed."""


class Operation(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What the document says of an operation beside its types."""

    description: str
    examples: tuple[Example, ...]


FILE = files("qwed.api") / "static" / "examples.json"
EXAMPLES: dict[str, Operation] = msgspec.json.decode(FILE.read_bytes(), type=dict[str, Operation])
"""In an order that works: an id in one example was made by another before it."""
