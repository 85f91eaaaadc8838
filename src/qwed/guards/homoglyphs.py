"""Detection of names that look like each other."""

from qwed.guards._skill.domains import LOOKALIKES, to_latin
from qwed.guards.tool_approval import fold_name


def confusable_skeleton(name: str) -> str:
    """Return the same key for all names that look alike, in any alphabet."""
    return fold_name(name) if name.isascii() else fold_name(to_latin(fold_name(name)))


def latin_letters(text: str) -> str:
    """Replace the letters that look like Latin ones by those; the length does not change."""
    return text if text.isascii() else text.translate(LOOKALIKES)
