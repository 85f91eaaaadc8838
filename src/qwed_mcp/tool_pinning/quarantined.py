"""Result of screening a server's tools, and the quarantined ones among them."""

import json
from typing import Any, NamedTuple

from mcp_types import Tool

from qwed.guards.safe_display import visible, visible_name, visible_texts
from qwed_mcp.tool_pinning.digest import DefinitionTooLargeError, definition_of

MAX_REQUEST_BYTES = 4_096
"""Largest release request in JSON bytes; the other limits are shares of it."""
MAX_EXCERPT_BYTES = 1_900


class QuarantinedTool(NamedTuple):
    """Tool that is hidden from the client until an approver releases exactly this definition."""

    tool: Tool
    digest: str
    """SHA-256 of the canonical definition; a release is for this definition only."""
    reasons: tuple[str, ...]
    server: str = ""
    pinned_digest: str = ""
    """Digest of the definition pinned under this name, or empty."""
    releasable: bool = True
    """False for a name that is listed twice and for a definition that is too large to show."""
    matched_words: tuple[str, ...] = ()
    """Text it is quarantined for: shown to the approver, never to a model."""

    @property
    def what(self) -> str:
        """Kind of the quarantined item."""
        return "definition"

    @property
    def name(self) -> str:
        """Name of the tool."""
        return self.tool.name

    @property
    def request(self) -> dict[str, Any]:
        """Parameters of the action that the approver decides: short, with invisible text escaped and secrets masked."""
        return {
            "server": self.server,
            "tool": visible_name(self.tool.name),
            "digest": self.digest,
            "previous_digest": self.pinned_digest,
            "reasons": visible_texts(self.reasons),
            "found": visible_texts(self.matched_words),
            "definition": _definition_excerpt(self.tool),
        }


class ScreeningResult(NamedTuple):
    """Tools of one listing, divided into passed and quarantined."""

    passed: tuple[Tool, ...]
    quarantined: tuple[QuarantinedTool, ...]


def _definition_excerpt(tool: Tool) -> str:
    """Return the start of a definition for the approver, with the texts that a model reads first."""
    try:
        definition = definition_of(tool)
        ordered = {key: definition.pop(key) for key in ("name", "title", "description") if key in definition}
        text = json.dumps({**ordered, **definition}, ensure_ascii=False)
    except (DefinitionTooLargeError, RecursionError):
        return "{...} (too deep to be shown)"
    return visible(text, MAX_EXCERPT_BYTES)
