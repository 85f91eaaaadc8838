"""Which names would be taken for one another."""

from qwed.guards._skill.domains import in_latin
from qwed.guards.tool_approval import folded


def alike(name: str) -> str:
    """The name as whoever does not look closely takes it: the same for all that look the same, whatever alphabet."""
    return folded(name) if name.isascii() else folded(in_latin(folded(name)))
