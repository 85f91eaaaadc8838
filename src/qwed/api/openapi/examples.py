"""Example requests and responses by operation id; a test sends every request and compares the response."""

from importlib.resources import files
from typing import Any

import msgspec


class Example(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """One request and its response."""

    name: str
    summary: str
    status: int = 200
    path: dict[str, str] = {}
    query: dict[str, str] = {}
    headers: dict[str, str] = {}
    body: Any = msgspec.UNSET
    answer: Any = None
    key: str | None = None
    """Organisation key of an earlier example to use in place of the owner's."""
    token: str | None = None
    """Agent token to use."""
    excerpt: bool = False
    """True if the printed response is shortened."""


class OperationExamples(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Description and examples of an operation."""

    description: str
    examples: tuple[Example, ...]


FILE = files("qwed.api.openapi") / "static" / "examples.json"
EXAMPLES: dict[str, OperationExamples] = msgspec.json.decode(FILE.read_bytes(), type=dict[str, OperationExamples])
"""In an order that works: ids in an example come from earlier ones."""
