"""What an approver is shown of a definition: nothing hidden, no secret, and short enough to be read."""

import json

from mcp_types import Tool

from qwed.guards.visible import visible
from qwed_mcp.definitions.wire import TooLarge, definition_of

MAX_SHOWN = 4_096
"""Bytes of JSON that an approver is asked with, all in all; the rest are shares of it."""
MAX_EXCERPT = 1_900


def excerpt(tool: Tool) -> str:
    """The beginning of a definition as its members come, the texts a model reads first."""
    try:
        definition = definition_of(tool)
        ordered = {key: definition.pop(key) for key in ("name", "title", "description") if key in definition}
        text = json.dumps({**ordered, **definition}, ensure_ascii=False)
    except (TooLarge, RecursionError):
        return "{...} (too deep to be shown)"
    return visible(text, MAX_EXCERPT)
