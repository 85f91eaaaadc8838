"""Tool names: plain, or `mcp__<server>__<tool>` for a tool of an MCP server."""

import re

ALL_OF_SERVER = "mcp__<server>__*"
"""Wildcard form for all tools of a server."""

_PREFIX, _BETWEEN = "mcp__", "__"
# A server name contains no `__` and does not end in `_`; otherwise the start of the tool's name would be ambiguous.
_SERVER = r"[A-Za-z0-9.-]+(?:_[A-Za-z0-9.-]+)*"
_SERVER_NAME = re.compile(_SERVER)
_WHOLE_SERVER = re.compile(rf"mcp__({_SERVER})__\*")
_OFFERED = re.compile(rf"mcp__({_SERVER})__[A-Za-z0-9_./-]+")


def is_server_name(text: str) -> bool:
    """Return True if a server can have this name."""
    return _SERVER_NAME.fullmatch(text) is not None


def base_tool_name(name: str) -> str:
    """Return the tool's name without the server prefix."""
    return possible_tool_names(name)[0]


def possible_tool_names(name: str) -> tuple[str, ...]:
    """Return the possible base names, likeliest first: in `mcp__a__b__c` the server is `a` or `a__b`."""
    if not name.startswith(_PREFIX):
        return (name,)
    parts = name.split(_BETWEEN)
    if len(parts) < 3 or not parts[1]:
        # No server part. The rest is a candidate too, because a list may contain it.
        return (name, *filter(None, parts[1:]))
    names = (_BETWEEN.join(parts[start:]) for start in range(2, len(parts)))
    return tuple(candidate for candidate in names if candidate) or (name,)


def server_of(name: str) -> str | None:
    """Return the server of an unambiguous `mcp__` name, or None."""
    match = _OFFERED.fullmatch(name) if name.startswith(_PREFIX) else None
    return None if match is None else match[1]


def server_of_wildcard(entry: str) -> str | None:
    """Return the server that a wildcard entry names, or None."""
    match = _WHOLE_SERVER.fullmatch(entry)
    return None if match is None else match[1]
