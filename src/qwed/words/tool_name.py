"""What a tool is called: by a name of its own, or `mcp__<server>__<tool>` where a server offers it."""

import re

ALL_OF_SERVER = "mcp__<server>__*"
"""The one form in which a list names all tools of a server."""

_PREFIX, _BETWEEN = "mcp__", "__"
# A server's name has no `__` and ends in no `_`: else nobody could tell where the tool's name begins.
_SERVER = r"[A-Za-z0-9.-]+(?:_[A-Za-z0-9.-]+)*"
_SERVER_NAME = re.compile(_SERVER)
_WHOLE_SERVER = re.compile(rf"mcp__({_SERVER})__\*")
_OFFERED = re.compile(rf"mcp__({_SERVER})__[A-Za-z0-9_./-]+")


def is_server_name(text: str) -> bool:
    """Whether a server can be called so."""
    return _SERVER_NAME.fullmatch(text) is not None


def bare(name: str) -> str:
    """The name a server gives the tool; any other name as it is."""
    return readings(name)[0]


def readings(name: str) -> tuple[str, ...]:
    """What may be the tool's own name, the likeliest first: whoever reads `a__b__c` may take `a__b` for the server."""
    if not name.startswith(_PREFIX):
        return (name,)
    parts = name.split(_BETWEEN)
    if len(parts) < 3 or not parts[1]:
        # Nobody told the server; the tool's name is read as well, where a list may have it.
        return (name, *filter(None, parts[1:]))
    found = (_BETWEEN.join(parts[start:]) for start in range(2, len(parts)))
    return tuple(each for each in found if each) or (name,)


def server_of(name: str) -> str | None:
    """The server whose tool this plainly is; None where a name is anything but plain."""
    found = _OFFERED.fullmatch(name) if name.startswith(_PREFIX) else None
    return None if found is None else found[1]


def server_in(entry: str) -> str | None:
    """The server all of whose tools an entry of a list names."""
    found = _WHOLE_SERVER.fullmatch(entry)
    return None if found is None else found[1]
